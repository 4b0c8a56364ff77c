package catalog

import "fmt"

// Bits of the mask (nvml.h, nvmlClocksEventReason*).
const (
	Idle         uint64 = 1 << iota
	Application         // clocks set by an administrator
	PowerCap            // the driver enforces the power limit
	HWSlowdown          // the hardware halves its clocks or more
	SyncBoost           // clocks kept equal with other GPUs
	SWThermal           // temperature, by the driver
	HWThermal           // temperature, by the hardware
	PowerBrake          // the board or the chassis demands less power
	DisplayClock        // clocks of a display

	// Power and Thermal are the reasons that limit performance: power, and temperature or a
	// slowdown by the hardware. Harmful is both. Low clocks of an idle GPU, or clocks set by
	// an administrator, are not harmful.
	Power   = PowerCap | PowerBrake
	Thermal = HWSlowdown | SWThermal | HWThermal
	Harmful = Power | Thermal
)

// reasons has, for each bit, the key for JSON documents and the words for display.
var reasons = [...]struct{ key, words string }{
	{"gpu_idle", "idle"},
	{"applications_clocks_setting", "application clocks"},
	{"sw_power_cap", "power limit"},
	{"hw_slowdown", "hardware slowdown"},
	{"sync_boost", "sync boost with a slower GPU"},
	{"sw_thermal_slowdown", "temperature (driver)"},
	{"hw_thermal_slowdown", "temperature (hardware)"},
	{"hw_power_brake_slowdown", "power brake"},
	{"display_clock_setting", "display clocks"},
}

// ThrottleKeys returns the keys of all reasons in a mask, lowest bit first; never nil. A bit that
// this package does not know is "bit_N".
func ThrottleKeys(mask uint64) []string {
	list := []string{}
	for bit := range 64 {
		switch {
		case mask&(1<<bit) == 0:
		case bit < len(reasons):
			list = append(list, reasons[bit].key)
		default:
			list = append(list, fmt.Sprintf("bit_%d", bit))
		}
	}
	return list
}

// ThrottleWords returns the reasons in a mask for display, lowest bit first, without Idle.
func ThrottleWords(mask uint64) []string {
	var list []string
	for bit := range 64 {
		switch {
		case mask&^Idle&(1<<bit) == 0:
		case bit < len(reasons):
			list = append(list, reasons[bit].words)
		default:
			list = append(list, fmt.Sprintf("reason 0x%x", uint64(1)<<bit))
		}
	}
	return list
}
