(async () => {
  const image = new Image();
  image.src = "data:image/png;base64,%s";
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0);
  const lines = [];
  for (let y = 0; y + %d <= image.height; y += %d) {
    const line = [];
    for (let x = 0; x + %d <= image.width; x += %d) {
      const { data } = context.getImageData(x, y, %d, %d);
      line.push([0, 1, 2].map((c) => {
        let sum = 0;
        for (let i = c; i < data.length; i += 4) sum += data[i];
        return Math.floor((4 * sum) / data.length).toString(16).padStart(2, "0");
      }).join(""));
    }
    lines.push(line.join(" "));
  }
  return lines.join("\n") + "\n";
})()
