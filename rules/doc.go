// Package rules defines the bottlenecks of a vLLM server that rooftop detects, one file each:
// the condition on a window, the conclusion over a run, its confidence, and the fix with the
// value to set. [All] returns the rules; [Explanations] describes them with the constants that
// they use.
//
// Package engine runs the rules, decides which findings are significant, and ranks them. Rules
// are pure: they use no clock, file, network or random source, and return plain sentences
// without a layout.
package rules
