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

// dcgmFresh is the age up to which the page's values count as current. Rules that join
// page and GPU are switched off for older values.
const dcgmFresh = time.Second

// dcgmSource reads a DCGM exporter's page. The exporter renders values that DCGM sampled up to
// its interval ago (30 s by default), so a reading is stamped with the time at which its values
// were first seen.
type dcgmSource struct {
	base
	fetch Fetch
	clock func() time.Duration
	node  string

	parsing sync.Mutex // guards reader
	reader  *dcgmReader

	// Guarded by mu.
	rows  []dcgmRow
	since time.Duration // when the values of rows were first seen
	// renewed is true once values were seen to change. Before that they may be older than
	// since by up to the exporter's interval.
	renewed bool
	oldest  time.Duration // the greatest age so far
}

func openDCGM(ctx context.Context, o Options) (Source, error) {
	s := &dcgmSource{fetch: o.DCGM, clock: o.Clock, node: o.Remote, reader: newDCGMReader()}
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
	s.keepAll()
	s.storeRows(rows, s.clock())
	return s, nil
}

// page fetches the rows of the page, only those of the server's node if the page has it.
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

// storeRows stores the rows of a page in the order of devices and updates the age of their
// values.
func (s *dcgmSource) storeRows(rows []dcgmRow, now time.Duration) {
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
	for p := range ordered {
		s.last[p] = s.stateOf(p)
	}
}

// stateOf returns the state of the device at a position.
func (s *dcgmSource) stateOf(position int) state {
	row := &s.rows[position]
	if row.values == nil {
		return state{asked: true, note: label(s.devices[position]) + " is no longer on the page"}
	}
	now := state{gpu: row.gpu, why: row.why, asked: true}
	if !s.renewed { // the age is unknown, so growth of the counter has no known duration
		now.gpu.Fields[engine.GPUEnergyJ] = stat.None
		if s.oldest > dcgmFresh && now.why[engine.GPUEnergyJ] == "" {
			now.why[engine.GPUEnergyJ] = "the exporter has not renewed its values yet, so their age is unknown"
		}
	}
	return now
}

// sameReadings reports whether two pages have the same values. The energy counter of a
// GPU always grows, so equal pages come from one sampling.
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
	err := s.ready()
	s.mu.Unlock()
	if err != nil {
		return engine.GPUReading{}, err
	}
	began := s.clock()
	rows, err := s.page(ctx)
	if err != nil {
		return engine.GPUReading{}, fmt.Errorf("read GPUs from the DCGM exporter: %w", err)
	}
	now := s.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.storeRows(rows, now)
	reading, ok := s.reading(s.keep)
	if !ok {
		return engine.GPUReading{}, errors.New("read GPUs from the DCGM exporter: the page no longer shows any of them")
	}
	reading.T, reading.Took = s.since, now-began
	return reading, nil
}

// Processes implements [Source]. It always fails: the page names pods, not processes.
func (s *dcgmSource) Processes(context.Context) (map[string][]int, error) {
	return nil, fmt.Errorf("a DCGM exporter lists no processes: %w", collect.ErrNoData)
}

// Missing implements [Source].
func (s *dcgmSource) Missing() []engine.Missing {
	missing := s.base.Missing()
	s.mu.Lock()
	defer s.mu.Unlock()
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
	notes := s.base.Notes()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.keep {
		d := s.devices[p]
		if xid := s.rows[p].xid.Or(0); xid != 0 {
			notes = append(notes, fmt.Sprintf("%s: the driver's last error on it is XID %.0f", label(d), xid))
		}
		if d.MIG() {
			notes = append(notes, label(d)+" is a MIG slice: ceilings are those of the whole GPU")
		}
	}
	return notes
}
