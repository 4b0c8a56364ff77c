package gpu

import "time"

// Averaging describes the time over which a source's readings are already means. Readings
// cannot resolve anything shorter than Window.
type Averaging struct {
	Window time.Duration // of utilization, and of power unless InstantPower
	// InstantPower is true if power readings of all kept devices are instantaneous.
	InstantPower bool
}

// averagingWindow is the longest averaging period of the drivers. NVML's utilization
// covers a sample period between 1/6 s and 1 s, depending on the product, which it does
// not report (nvml.h, nvmlUtilization_t); its power is the mean of a second on Ampere
// and newer except GA100 (nvml.h, nvmlDeviceGetPowerUsage). AMD documents neither, so
// the same second is assumed.
const averagingWindow = time.Second

// AveragingOf returns the averaging of a source. Call it after the readings, from which
// some sources learn how old their values are.
func AveragingOf(s Source) Averaging {
	if own, ok := s.(interface{ averaging() Averaging }); ok {
		return own.averaging()
	}
	return Averaging{Window: averagingWindow}
}

// averaging adds the age of the exporter's values to the window, because they are stamped
// with the time at which they were first seen.
func (s *dcgmSource) averaging() Averaging {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Averaging{Window: averagingWindow + s.oldest}
}
