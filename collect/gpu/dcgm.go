package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// A page whose values are older than this is no reading of now; the rules that
// join page and GPU are switched off from there on.
const dcgmFresh = time.Second

// dcgmSource reads a DCGM exporter's page. The exporter renders values that DCGM
// sampled up to its interval ago (30 s unless told otherwise), so a reading is
// stamped with the time at which its values were first seen.
type dcgmSource struct {
	choice
	fetch Fetch
	clock func() time.Duration
	node  string
	notes []string

	parsing sync.Mutex // one page at a time, guards reader
	reader  *dcgmReader

	// Guarded by mu.
	rows  []dcgmRow
	since time.Duration // when rows' values were first seen
	// renewed says that values were seen to change, so that since is when they did;
	// those of the first page may be older than it by the exporter's interval.
	renewed bool
	oldest  time.Duration // the greatest age seen
}

func openDCGM(ctx context.Context, o Options) (Source, error) {
	s := &dcgmSource{fetch: o.DCGM, clock: o.Clock, node: cmp.Or(o.NodeName, o.Remote), reader: newDCGMReader()}
	rows, err := s.page(ctx)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s has no DCGM_FI_* series: it is not a DCGM exporter's page", cmp.Or(o.DCGMURL, "the page"))
	}
	hosts := nodes(rows)
	for _, r := range rows {
		d := r.device
		if len(hosts) == 1 {
			d.Host = ""
		}
		s.devices = append(s.devices, d)
	}
	if len(hosts) > 1 {
		s.notes = append(s.notes, "the page covers the nodes "+strings.Join(hosts, ", ")+", and nothing says which is the server's")
	}
	s.keep = kept(nil, len(rows))
	s.remember(rows, s.clock())
	return s, nil
}

// page fetches the rows, of one node where it is named and known.
func (s *dcgmSource) page(ctx context.Context) ([]dcgmRow, error) {
	body, err := s.fetch(ctx)
	if err != nil {
		return nil, err
	}
	s.parsing.Lock()
	rows, err := s.reader.rows(body)
	s.parsing.Unlock()
	if err != nil {
		return nil, err
	}
	if hosts := nodes(rows); len(hosts) > 1 {
		ours := slices.IndexFunc(hosts, func(h string) bool { return sameHost(h, s.node) })
		if ours >= 0 {
			rows = slices.DeleteFunc(rows, func(r dcgmRow) bool { return r.device.Host != hosts[ours] })
		}
	}
	return rows, nil
}

func nodes(rows []dcgmRow) []string {
	var hosts []string
	for _, r := range rows {
		hosts = append(hosts, r.device.Host)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// sameHost compares host names, with or without their domain.
func sameHost(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	if _, err := netip.ParseAddr(b); err == nil {
		return a == b // an address has no domain
	}
	short := func(name string) string { first, _, _ := strings.Cut(strings.ToLower(name), "."); return first }
	return short(a) == short(b)
}

// remember keeps the rows of a page, in the order of devices, and notes whether
// their values are new.
func (s *dcgmSource) remember(rows []dcgmRow, now time.Duration) {
	ordered := make([]dcgmRow, len(s.devices))
	for i, d := range s.devices {
		at := slices.IndexFunc(rows, func(r dcgmRow) bool { return r.device.UUID == d.UUID && (d.Host == "" || r.device.Host == d.Host) })
		if at >= 0 {
			ordered[i] = rows[at]
		}
	}
	if !sameReadings(s.rows, ordered) {
		s.since, s.renewed = now, s.rows != nil
	}
	s.oldest = max(s.oldest, now-s.since)
	s.rows = ordered
}

// sameReadings reports whether two pages hold the same values. The energy
// counter of a GPU never stands still, so equal pages are one sampling.
func sameReadings(a, b []dcgmRow) bool {
	return slices.EqualFunc(a, b, func(x, y dcgmRow) bool {
		return x.gpu == y.gpu
	})
}

// Name implements [Source].
func (s *dcgmSource) Name() string { return "DCGM exporter" }

// Read implements [Source].
func (s *dcgmSource) Read(ctx context.Context) (engine.GPUReading, error) {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return engine.GPUReading{}, ErrClosed
	}
	began := s.clock()
	rows, err := s.page(ctx)
	if err != nil {
		return engine.GPUReading{}, fmt.Errorf("read GPUs from the DCGM exporter: %w", err)
	}
	now := s.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remember(rows, now)
	reading := engine.GPUReading{T: s.since, Took: now - began, Devices: make([]engine.GPU, len(s.keep))}
	present := 0
	for i, p := range s.keep {
		d := &s.devices[p]
		if s.rows[p].values != nil {
			reading.Devices[i] = s.rows[p].gpu
			if !s.renewed { // growth since then would be that of a longer time
				reading.Devices[i].Fields[engine.GPUEnergyJ] = stat.None
			}
			present++
		}
		reading.Devices[i].Index, reading.Devices[i].Name, reading.Devices[i].UUID = d.Index, d.Name, d.UUID
	}
	switch {
	case len(s.keep) == 0:
		return engine.GPUReading{}, fmt.Errorf("no GPU is kept: %w", collect.ErrNoData)
	case present == 0:
		return engine.GPUReading{}, errors.New("read GPUs from the DCGM exporter: the page shows none of them any more")
	}
	return reading, nil
}

// Processes implements [Source]: the page names pods, not processes.
func (s *dcgmSource) Processes(context.Context) (map[string][]int, error) {
	return nil, fmt.Errorf("a DCGM exporter lists no processes: %w", collect.ErrNoData)
}

// Missing implements [Source].
func (s *dcgmSource) Missing() []engine.Missing {
	s.mu.Lock()
	defer s.mu.Unlock()
	var labels []string
	var reasons []why
	for _, p := range s.keep {
		if s.rows[p].values != nil {
			reason := s.rows[p].why
			if !s.renewed && s.oldest > dcgmFresh && reason[engine.GPUEnergyJ] == "" {
				reason[engine.GPUEnergyJ] = "the exporter has not renewed its values yet, so that nobody knows how old these are"
			}
			labels = append(labels, label(s.devices[p]))
			reasons = append(reasons, reason)
		}
	}
	missing := gaps(labels, reasons)
	if s.oldest > dcgmFresh {
		missing = append(missing, engine.Missing{
			What:   "fresh GPU readings",
			Reason: fmt.Sprintf("the exporter renewed its values after up to %v", s.oldest.Round(100*time.Millisecond)),
			Effect: "switches off the rules that join page and GPU while the two are more than 1 s apart: start the exporter with DCGM_EXPORTER_INTERVAL=500 (milliseconds; 30000 unless set)",
		})
	}
	return missing
}

// Notes implements [Source].
func (s *dcgmSource) Notes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	notes := slices.Clone(s.notes)
	for _, p := range s.keep {
		row, d := &s.rows[p], s.devices[p]
		switch {
		case row.values == nil:
			notes = append(notes, label(d)+" is not on the page any more")
		case row.xid.Or(0) != 0:
			notes = append(notes, fmt.Sprintf("%s: the driver's last error on it is XID %.0f", label(d), row.xid.V))
		}
		if d.MIG() {
			notes = append(notes, label(d)+" is a MIG slice: ceilings are those of the whole GPU")
		}
	}
	return notes
}

// Close implements [Source].
func (s *dcgmSource) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}
