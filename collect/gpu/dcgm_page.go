package gpu

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Fetch returns the body of an exporter's page. Concurrent calls must not share the
// returned memory.
type Fetch func(ctx context.Context) ([]byte, error)

// FromClient returns a Fetch for the exporter of a client.
func FromClient(c *collect.Client) Fetch {
	return func(ctx context.Context) ([]byte, error) {
		return c.Get(ctx, "/metrics", collect.MetricsAccept, nil)
	}
}

// scope says for which devices a DCGM field is valid.
type scope uint8

const (
	perDevice scope = iota // measured for each device, slices included
	sharedGPU              // measured for the whole GPU and valid for its slices
	wholeOnly              // valid for the whole GPU only (DCGM prints 0 for slices)
)

type dcgmMetric struct {
	name  string
	field engine.GPUField
	unit  float64 // DCGM's units in one of the field's
	scope scope
}

const (
	dcgmXID      = "DCGM_FI_DEV_XID_ERRORS"
	dcgmFree     = "DCGM_FI_DEV_FB_FREE"
	dcgmReserved = "DCGM_FI_DEV_FB_RESERVED"
)

// dcgmMetrics lists DCGM's fields (its field identifiers give the units), the preferred
// one first if two report the same. Traffic is a rate, although exporters before 2022
// declare it as a counter (dcgm-exporter #87).
func dcgmMetrics() []dcgmMetric {
	const milli = 1000
	return []dcgmMetric{
		{"DCGM_FI_DEV_GPU_UTIL", engine.GPUUtil, percent, wholeOnly},
		{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", engine.GPUUtil, 1, perDevice},
		{"DCGM_FI_DEV_MEM_COPY_UTIL", engine.GPUMemUtil, percent, wholeOnly},
		{"DCGM_FI_DEV_POWER_USAGE", engine.GPUPowerW, 1, wholeOnly},
		{"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", engine.GPUPowerLimitW, 1, wholeOnly},
		{"DCGM_FI_DEV_POWER_MGMT_LIMIT", engine.GPUPowerLimitW, 1, wholeOnly},
		{"DCGM_FI_DEV_FB_TOTAL", engine.GPUVRAMTotal, perMiB, perDevice},
		{"DCGM_FI_DEV_FB_USED", engine.GPUVRAMUsed, perMiB, perDevice},
		{"DCGM_FI_DEV_GPU_TEMP", engine.GPUTemperatureC, 1, sharedGPU},
		{"DCGM_FI_DEV_SM_CLOCK", engine.GPUSMClockMHz, 1, sharedGPU},
		{"DCGM_FI_DEV_MAX_SM_CLOCK", engine.GPUSMClockMaxMHz, 1, sharedGPU},
		{"DCGM_FI_DEV_GPU_MAX_OP_TEMP", engine.GPUTemperatureLimitC, 1, sharedGPU},
		{"DCGM_FI_DEV_SLOWDOWN_TEMP", engine.GPUTemperatureLimitC, 1, sharedGPU},
		{"DCGM_FI_DEV_MEM_CLOCK", engine.GPUMemClockMHz, 1, sharedGPU},
		{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", engine.GPUEnergyJ, milli, wholeOnly},
		{"DCGM_FI_PROF_DRAM_ACTIVE", engine.GPUDRAMActive, 1, perDevice},
		{"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", engine.GPUTensorUtil, 1, perDevice},
		{"DCGM_FI_PROF_SM_ACTIVE", engine.GPUSMActive, 1, perDevice},
		{"DCGM_FI_PROF_PCIE_TX_BYTES", engine.GPUPCIeTxBps, 1, wholeOnly},
		{"DCGM_FI_PROF_PCIE_RX_BYTES", engine.GPUPCIeRxBps, 1, wholeOnly},
		{"DCGM_FI_PROF_NVLINK_TX_BYTES", engine.GPUNVLinkTxBps, 1, wholeOnly},
		{"DCGM_FI_PROF_NVLINK_RX_BYTES", engine.GPUNVLinkRxBps, 1, wholeOnly},
		{"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", clockEvents, 1, sharedGPU},
		{"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", clockEvents, 1, sharedGPU},
	}
}

// shares are the readings between 0 and 1, by up to roundedUp above it.
var shares = [...]engine.GPUField{engine.GPUUtil, engine.GPUMemUtil, engine.GPUDRAMActive, engine.GPUTensorUtil, engine.GPUSMActive}

const roundedUp = 0.01

// dcgmReader reads pages. It is not safe for concurrent use.
type dcgmReader struct {
	metrics  []dcgmMetric
	filter   *collect.Filter
	families collect.Families
}

func newDCGMReader() *dcgmReader {
	r := &dcgmReader{metrics: dcgmMetrics()}
	names := []string{dcgmXID, dcgmFree, dcgmReserved}
	for _, m := range r.metrics {
		names = append(names, m.name)
	}
	r.filter = collect.NewExactFilter(names...)
	return r
}

// dcgmRow holds a page's values for one device.
type dcgmRow struct {
	device Device
	gpu    engine.GPU
	why    why
	xid    stat.Opt // the last XID error, 0 if there was none
	values map[string]float64
}

type dcgmKey struct {
	host, uuid string
	gi         int // -1 for a whole GPU
}

// rows parses a page into rows, ordered by node, index and slice. A GPU in MIG mode
// appears as its slices.
func (r *dcgmReader) rows(page []byte) ([]dcgmRow, error) {
	if err := collect.Parse(page, r.filter, &r.families); err != nil {
		return nil, err
	}
	byKey := map[dcgmKey]*dcgmRow{}
	for _, s := range r.families.Samples {
		d, ok := dcgmDevice(s.Series)
		if !ok || dcgmBlank(s.Value) {
			continue
		}
		key := dcgmKey{d.Host, cmp.Or(d.Parent, d.UUID), d.GI}
		row := byKey[key]
		if row == nil {
			row = &dcgmRow{device: d, values: map[string]float64{}}
			byKey[key] = row
		}
		// One device appears once per pod that shares it, with the same values.
		if _, twice := row.values[s.Name]; !twice {
			row.values[s.Name] = s.Value
		}
	}
	sliced := map[dcgmKey]bool{}
	for key := range byKey {
		if key.gi >= 0 {
			sliced[dcgmKey{key.host, key.uuid, -1}] = true
		}
	}
	var rows []dcgmRow
	for key, row := range byKey {
		if sliced[key] {
			continue
		}
		var whole *dcgmRow
		if key.gi >= 0 {
			whole = byKey[dcgmKey{key.host, key.uuid, -1}]
		}
		row.read(r.metrics, whole)
		rows = append(rows, *row)
	}
	slices.SortFunc(rows, func(a, b dcgmRow) int {
		return cmp.Or(cmp.Compare(a.device.Host, b.device.Host), cmp.Compare(a.device.Index, b.device.Index),
			cmp.Compare(a.device.GI, b.device.GI), cmp.Compare(a.device.UUID, b.device.UUID))
	})
	return rows, nil
}

// dcgmDevice returns the device that the labels of a series name.
func dcgmDevice(s *collect.Series) (Device, bool) {
	d := Device{
		GI: -1, Minor: -1,
		UUID:   cmp.Or(s.Label("UUID"), s.Label("uuid")),
		Name:   s.Label("modelName"),
		BusID:  strings.ToLower(s.Label("pci_bus_id")),
		Host:   cmp.Or(s.Label("Hostname"), s.Label("hostname")),
		Driver: s.Label("DCGM_FI_DRIVER_VERSION"),
	}
	index, err := strconv.Atoi(s.Label("gpu"))
	if err != nil || index < 0 || d.UUID == "" {
		return d, false
	}
	d.Index = index
	if minor, err := strconv.Atoi(strings.TrimPrefix(s.Label("device"), "nvidia")); err == nil && minor >= 0 {
		d.Minor = minor
	}
	instance := s.Label("GPU_I_ID")
	if instance == "" {
		return d, true
	}
	gi, err := strconv.Atoi(instance)
	if err != nil || gi < 0 {
		return d, false
	}
	// The page has no UUID for a slice: build the older spelling without the compute
	// instance.
	d.GI, d.Parent = gi, d.UUID
	d.UUID = "MIG-" + d.UUID + "/" + instance
	d.Name = strings.TrimSpace(d.Name + " MIG " + s.Label("GPU_I_PROFILE"))
	return d, true
}

// dcgmBlank reports whether a value is one that DCGM stores for "no value" (dcgm_structs.h:
// DCGM_INT32_BLANK, DCGM_INT64_BLANK and DCGM_FP64_BLANK with their kin).
func dcgmBlank(v float64) bool {
	const fp64Blank, int32Blank = 1 << 47, math.MaxInt32 - 15
	return math.IsNaN(v) || v < 0 || v >= fp64Blank || (v >= int32Blank && v <= int32Blank+15)
}

// read sets the readings from the values. A slice takes readings of scope sharedGPU from
// its whole GPU.
func (r *dcgmRow) read(metrics []dcgmMetric, whole *dcgmRow) {
	r.gpu.Index, r.gpu.Name, r.gpu.UUID = r.device.Index, r.device.Name, r.device.UUID
	slice := r.device.MIG()
	for _, m := range metrics {
		if r.hasField(m.field) {
			continue
		}
		v, found := r.values[m.name]
		if !found && whole != nil && m.scope == sharedGPU {
			v, found = whole.values[m.name]
		}
		switch {
		case slice && m.scope == wholeOnly:
			r.why[m.field] = "DCGM measures the whole GPU only, and this is a MIG slice of it"
		case !found:
			if r.why[m.field] == "" {
				r.why[m.field] = "the page has no " + m.name + ": add it to the exporter's counters file"
			}
		case slices.Contains(shares[:], m.field) && v/m.unit > 1+roundedUp:
			r.why[m.field] = fmt.Sprintf("%s is %g, which is not a share of a GPU", m.name, v)
		default:
			r.setReading(m, v)
		}
	}
	if total := r.total(); !r.hasField(engine.GPUVRAMTotal) && total.OK {
		r.gpu.Fields[engine.GPUVRAMTotal], r.why[engine.GPUVRAMTotal] = total, ""
	}
	r.device.VRAMBytes = r.gpu.Fields[engine.GPUVRAMTotal]
	if xid, ok := r.values[dcgmXID]; ok {
		r.xid = stat.Some(xid)
	}
}

func (r *dcgmRow) hasField(f engine.GPUField) bool {
	if f == clockEvents {
		return r.gpu.ThrottleOK
	}
	return r.gpu.Fields[f].OK
}

func (r *dcgmRow) setReading(m dcgmMetric, v float64) {
	r.why[m.field] = ""
	if m.field == clockEvents {
		r.gpu.Throttle, r.gpu.ThrottleOK = uint64(v), true
		return
	}
	r.gpu.Fields[m.field] = stat.Some(v / m.unit)
}

// total returns used, free and reserved memory added up, in bytes, for an exporter that
// does not report the total.
func (r *dcgmRow) total() stat.Opt {
	const mib = 1 << 20
	free, found := r.values[dcgmFree]
	used := r.gpu.Fields[engine.GPUVRAMUsed]
	if !found || !used.OK {
		return stat.None
	}
	return stat.Some(used.V + (free+r.values[dcgmReserved])*mib)
}
