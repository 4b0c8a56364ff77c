package gpu

import "time"

// Averaging is over how long a source's readings are means already: of a time
// shorter than Window they tell nothing.
type Averaging struct {
	Window time.Duration // of utilisation, and of power unless InstantPower
	// InstantPower says that power readings of all kept devices are instants.
	InstantPower bool
}

// NVML's utilisation is of a sample period that is between 1/6 s and 1 s
// depending on the product, which it does not tell (nvml.h, nvmlUtilization_t);
// its power is the mean of a second on Ampere and newer, GA100 aside (nvml.h,
// nvmlDeviceGetPowerUsage). AMD documents neither for its own, so the same
// second is assumed.
const averagingWindow = time.Second

// AveragingOf says how far a source averages. It is asked after the readings:
// some sources find out from them how old their values are.
func AveragingOf(s Source) Averaging {
	if own, ok := s.(interface{ averaging() Averaging }); ok {
		return own.averaging()
	}
	return Averaging{Window: averagingWindow}
}

// averaging adds the age of the exporter's values: they are stamped with the
// time at which they were first seen.
func (s *dcgmSource) averaging() Averaging {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Averaging{Window: averagingWindow + s.oldest}
}
