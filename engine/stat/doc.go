// Package stat holds the arithmetic that windows, verdicts and probes share:
// optional numbers, histograms as cumulative buckets, their differences and
// quantiles. It knows nothing of vLLM, and none of it allocates unless it says so.
package stat
