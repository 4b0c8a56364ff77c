// Package launch is the launch configuration of a vLLM server as data: its
// command line, its config file and its environment, read and edited together.
//
// [Parse] finds the vLLM command within an argument vector, behind interpreters
// and wrappers and inside `sh -c` scripts, and reads it as vLLM's own parser
// would: both spellings of a flag, values after a space or an equals sign,
// JSON and dotted sub-flags, abbreviations, a config file whose settings the
// command line overrides. [Config.With] and its kin return an edited copy that
// differs from the original in the one place that had to change; an unedited
// configuration renders byte for byte as it came in. `rooftop sim MODEL …`, a
// simulated server, is read as `vllm serve MODEL …` is.
//
// Secrets (API keys, tokens, passwords) stay in a configuration, because an
// exact restart needs them, but nothing that formats or looks up a value shows
// them: only [Config.Argv], [Config.Shell] and [Config.File] hold them.
//
// The package is pure: it opens no file and starts no process.
package launch
