package gpu

import "fmt"

// Bits of NVML's clocks-event (formerly throttle) reasons, nvml.h
// nvmlClocksEventReason*. nvidia-smi and DCGM use the same mask.
const (
	reasonIdle          = 1 << 0
	reasonAppClocks     = 1 << 1
	reasonSWPowerCap    = 1 << 2
	reasonHWSlowdown    = 1 << 3
	reasonSyncBoost     = 1 << 4
	reasonSWThermal     = 1 << 5
	reasonHWThermal     = 1 << 6
	reasonHWPowerBrake  = 1 << 7
	reasonDisplayClocks = 1 << 8

	// Clocks that are low because nothing runs, or because somebody chose them:
	// no limit of the hardware is at work.
	reasonsNotThrottling = reasonIdle | reasonAppClocks | reasonDisplayClocks
)

// ThrottleReasons names, lowest bit first, the reasons in a clocks-event mask
// for which the hardware runs slower than it was asked to. An idle GPU and
// clocks that somebody set are none; a bit that this list lacks is named by its
// value.
func ThrottleReasons(mask uint64) []string {
	words := [...]string{
		2: "software power cap",
		3: "hardware slowdown",
		4: "sync boost with a slower GPU",
		5: "software thermal slowdown",
		6: "hardware thermal slowdown",
		7: "hardware power brake",
	}
	var reasons []string
	for bit := range 64 {
		switch {
		case mask&^reasonsNotThrottling&(1<<bit) == 0:
		case bit < len(words):
			reasons = append(reasons, words[bit])
		default:
			reasons = append(reasons, fmt.Sprintf("reason 0x%x", uint64(1)<<bit))
		}
	}
	return reasons
}

// Throttled reports whether a clocks-event mask says that the hardware runs
// slower than it was asked to.
func Throttled(mask uint64) bool { return mask&^reasonsNotThrottling != 0 }

// PowerCapped reports whether power is what holds the clocks down: the enforced
// limit, or the external power brake.
func PowerCapped(mask uint64) bool { return mask&(reasonSWPowerCap|reasonHWPowerBrake) != 0 }

// Thermal reports whether temperature is what holds the clocks down.
func Thermal(mask uint64) bool { return mask&(reasonSWThermal|reasonHWThermal) != 0 }

// HardwareSlowdown reports whether the hardware itself halved the clocks or
// more: too hot, the power brake, or a power draw that the fast trigger caught.
func HardwareSlowdown(mask uint64) bool {
	return mask&(reasonHWSlowdown|reasonHWThermal|reasonHWPowerBrake) != 0
}
