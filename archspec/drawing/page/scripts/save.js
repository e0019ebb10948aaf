// Files of the picture as it is shown: SVG, and PNG drawn from it.

const MOST_PIXELS = 16000;

function save(blob, ending) {
  const link = make("a", { href: URL.createObjectURL(blob), download: `${fileName()}.${ending}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The name of the model with only those characters that every file system has. */
const fileName = () => plan.model.replace(/[^\w.+-]+/gu, "-").replace(/^[.-]+/, "").slice(0, 100) || "model";

const saveSvg = () => save(new Blob([savedPicture()], { type: "image/svg+xml" }), "svg");

const savePng = async () => save(await pngOf(savedPicture()), "png");

/** A PNG with two pixels per unit, or fewer where the picture is larger than a canvas may be. */
async function pngOf(text) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const scale = Math.min(2, MOST_PIXELS / image.naturalWidth, MOST_PIXELS / image.naturalHeight);
  const canvas = make("canvas", {});
  canvas.width = Math.ceil(image.naturalWidth * scale);
  canvas.height = Math.ceil(image.naturalHeight * scale);
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.drawImage(image, 0, 0);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}
