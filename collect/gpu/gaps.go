package gpu

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
)

// topic is a set of readings that are reported missing together.
type topic struct {
	what   string
	fields []engine.GPUField
	effect string // what their absence switches off
}

// clockEvents represents the mask of clocks-event reasons in lists of fields. The mask is not
// an engine.GPUField.
const clockEvents = engine.NumGPUFields

func topics() []topic {
	return []topic{
		{"GPU utilization", []engine.GPUField{engine.GPUUtil}, "switches off the GPU's part in distinguishing busy windows from idle ones; the server's own counters decide"},
		{"memory-controller utilization", []engine.GPUField{engine.GPUMemUtil}, "switches off mem_util"},
		{"GPU power", []engine.GPUField{engine.GPUPowerW}, "switches off tokens per watt, joules per token and the power-limit rule"},
		{"GPU power limit", []engine.GPUField{engine.GPUPowerLimitW}, "switches off the distance to the power limit"},
		{"VRAM", []engine.GPUField{engine.GPUVRAMTotal, engine.GPUVRAMUsed}, "switches off the VRAM peak and the check of the GPU's name against its memory; name the GPU with --gpu"},
		{"GPU temperature", []engine.GPUField{engine.GPUTemperatureC}, "switches off temperature_c"},
		{"GPU clocks", []engine.GPUField{engine.GPUSMClockMHz, engine.GPUMemClockMHz}, "switches off the clocks in the power-limit rule"},
		{"limits of GPU clock and temperature", []engine.GPUField{engine.GPUSMClockMaxMHz, engine.GPUTemperatureLimitC}, "switches off the distance of clock and temperature to their limits"},
		{"reasons for lower clocks", []engine.GPUField{clockEvents}, "switches off throttling as a cause of slow steps and of a power limit"},
		{"GPU energy counter", []engine.GPUField{engine.GPUEnergyJ}, "switches off nothing; energy is taken from the power readings"},
		{"DRAM and tensor-core use", []engine.GPUField{engine.GPUDRAMActive, engine.GPUTensorUtil, engine.GPUSMActive}, "switches off the measured memory bandwidth beside the ceiling"},
		{"PCIe traffic", []engine.GPUField{engine.GPUPCIeTxBps, engine.GPUPCIeRxBps}, "switches off the PCIe figures; no rule needs them"},
		{"NVLink traffic", []engine.GPUField{engine.GPUNVLinkTxBps, engine.GPUNVLinkRxBps}, "switches off the NVLink figures; no rule needs them"},
	}
}

// Units of sources, as the number of them in one of the field's.
const (
	percent = 100
	perMiB  = 1.0 / (1 << 20)
)

// why holds the reason why a device lacks each field, "" if it has the field or was not
// read. The last entry is for clockEvents.
type why [engine.NumGPUFields + 1]string

// allFor returns a why with the same reason for every field.
func allFor(reason string) (w why) {
	for f := range w {
		w[f] = reason
	}
	return w
}

// gaps lists by topic what devices lack; labels are the names of the devices. Devices with
// the same reason share an entry. An entry about all devices names none.
func gaps(labels []string, reasons []why) []engine.Missing {
	var missing []engine.Missing
	for _, t := range topics() {
		var order []string
		lacking := map[string][]string{}
		for i := range reasons {
			reason := firstReason(t, &reasons[i])
			if reason == "" {
				continue
			}
			if lacking[reason] == nil {
				order = append(order, reason)
			}
			lacking[reason] = append(lacking[reason], labels[i])
		}
		for _, reason := range order {
			m := engine.Missing{What: t.what, Reason: reason, Effect: t.effect}
			if devices := lacking[reason]; len(devices) < len(reasons) {
				m.What = fmt.Sprintf("%s of %s", t.what, strings.Join(devices, ", "))
			}
			missing = append(missing, m)
		}
	}
	return missing
}

func firstReason(t topic, w *why) string {
	for _, f := range t.fields {
		if w[f] != "" {
			return w[f]
		}
	}
	return ""
}

// label returns the name of a device for use in a sentence: "GPU 0 slice 1 of host".
func label(d Device) string {
	name := "GPU " + strconv.Itoa(d.Index)
	if d.MIG() {
		name += " slice " + strconv.Itoa(d.GI)
	}
	if d.Host != "" {
		name += " of " + d.Host
	}
	return name
}
