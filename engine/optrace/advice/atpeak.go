package advice

const (
	// atPeak is the share of the measured read bandwidth from which decode counts as at the
	// peak. The peak is a plain streaming read; kernels that also unpack weights and write
	// results stay some 10 % below it, and a peak measured in a few seconds is known within
	// about 5 %.
	atPeak = 0.85
	// abovePeak is the share above which the bytes cannot come from memory: the weights are in
	// the caches, and the memory's peak does not apply.
	abovePeak = 1.15
	// boundShare is the share of the decode time that memory-bound operators must have.
	boundShare = 0.6
)

// memoryBoundAtPeak returns the rate of decode and the memory's peak, in bytes per second, and
// whether decode is bound by memory and at that peak.
func (v *subject) memoryBoundAtPeak() (achieved, peak float64, ok bool) {
	achieved, peak, ok = v.OfPeak()
	if !ok || achieved < atPeak*peak || achieved > abovePeak*peak {
		return 0, 0, false
	}
	return achieved, peak, v.MemoryShare().Or(0) >= boundShare
}
