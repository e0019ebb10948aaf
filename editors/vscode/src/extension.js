const vscode = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");

let client;

async function start() {
  const [command, ...args] = vscode.workspace.getConfiguration("archspec").get("command");
  const server = { command, args, transport: TransportKind.stdio };
  client = new LanguageClient("archspec", "archspec", server, { documentSelector: [{ language: "arch" }] });
  try {
    await client.start();
  } catch (error) {
    vscode.window.showErrorMessage(
      `archspec: cannot start \`${[command, ...args].join(" ")}\`: ${error.message}. ` +
        "Install it with `pip install 'archspec-dsl[lsp]'`, or set archspec.command."
    );
  }
}

async function stop() {
  if (client !== undefined && client.isRunning()) {
    await client.stop();
  }
}

// The code lens of a model runs `archspec count`, in the same installation as the server.
function count(path, model) {
  const [command, ...args] = vscode.workspace.getConfiguration("archspec").get("command");
  const others = args.filter((argument) => argument !== "lsp" && argument !== "--stdio");
  const task = new vscode.Task(
    { type: "archspec" },
    vscode.TaskScope.Workspace,
    `count ${model}`,
    "archspec",
    new vscode.ProcessExecution(command, [...others, "count", `${path}:${model}`])
  );
  return vscode.tasks.executeTask(task);
}

function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("archspec.restart", async () => {
      await stop();
      await start();
    }),
    vscode.commands.registerCommand("archspec.count", count)
  );
  return start();
}

module.exports = { activate, deactivate: stop };
