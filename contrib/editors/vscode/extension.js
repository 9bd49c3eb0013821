// Starts `assay lsp` and connects the editor with it; all that is known about the language is known there.
const { workspace } = require('vscode');
const { LanguageClient } = require('vscode-languageclient/node');

let client;

function activate() {
  const settings = workspace.getConfiguration('pgl');
  const server = { command: settings.get('assay'), args: ['lsp'] };
  client = new LanguageClient('pgl', 'PGL', server, {
    documentSelector: [{ language: 'pgl' }],
    initializationOptions: { include: settings.get('include') },
  });
  return client.start();
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
