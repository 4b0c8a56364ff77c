// Package stat has the arithmetic shared by windows, verdicts and probes: optional numbers, histograms
// with cumulative buckets, their differences and quantiles. It does not depend on vLLM, and does not
// allocate unless documented.
package stat
