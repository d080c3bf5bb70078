"""The program that runs in the sandbox: tools on the files of a workspace, with the standard library alone."""
