// Package launcher starts a server exactly as it ran before, or with changes. It has the
// launch with environment and configuration files, edits of settings in place, and the
// process that assumes owner, limits and processors before it becomes the server.
package launcher
