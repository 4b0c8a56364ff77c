package enginepage

import (
	"maps"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine"
)

// Reading is the kind of value that a series feeds.
type Reading uint8

// Readings.
const (
	ReadGauge   Reading = iota
	ReadCounter         // sum over all series
	ReadHist
	ReadCacheValue // a value of the cache configuration
	ReadLoRA       // labels with the LoRA adapters of requests

	readCreated   // when a core counter was created, Unix time
	readStart     // when the process started, Unix time
	readHTTP      // answered requests by status
	readCacheInfo // labels of the cache configuration
)

// part is the part of a histogram that a series holds.
type part uint8

const (
	partNone part = iota
	partBucket
	partSum
	partCount
)

func (p part) suffix() string { return [...]string{"", "_bucket", "_sum", "_count"}[p] }

// Target is the gauge, counter or histogram of the page to which a metric of the catalog
// contributes, with all its series or with those of one label value.
type Target struct {
	Reading      Reading
	Index        uint8 // engine.Gauge, engine.Counter, engine.Hist or CacheValue
	Label, Value string
}

// Gauge returns the target of a gauge.
func Gauge(g engine.Gauge) Target { return Target{Reading: ReadGauge, Index: uint8(g)} }

// Counter returns the target of a counter.
func Counter(c engine.Counter) Target { return Target{Reading: ReadCounter, Index: uint8(c)} }

// Hist returns the target of a histogram.
func Hist(h engine.Hist) Target { return Target{Reading: ReadHist, Index: uint8(h)} }

// CacheValue is a value of the cache configuration that a page has as a gauge.
type CacheValue uint8

// Values of the cache configuration.
const (
	CacheBlocks CacheValue = iota // blocks of one rank's pool
	CacheTokens                   // tokens of one rank's pool
)

// Cache returns the target of a value of the cache configuration.
func Cache(v CacheValue) Target { return Target{Reading: ReadCacheValue, Index: uint8(v)} }

// Where returns the target for series with one label value.
func (t Target) Where(label, value string) Target {
	t.Label, t.Value = label, value
	return t
}

// Dialect is how one engine's metrics page is read.
type Dialect struct {
	Engine *catalog.Engine // its families and metrics
	// Targets are the targets of metric keys that only this engine has. Labels that a metric requires are in
	// the catalog; labels that split a metric are in the targets.
	Targets map[string][]Target
	// Core are the keys of counters that exist from the first page after a server's start. Their creation
	// times reveal a restart. A series that appears with its first event would look like a restart.
	Core []string
	// Rank is the label that distinguishes data-parallel ranks, Replica that of replicas behind one
	// page; "" if there is none.
	Rank, Replica string
	// HTTP is the family, with its whole name, of answered requests, and Status its label of the status.
	HTTP, Status string
	// Generates, if set, reports series of HTTP that count requests to the engine: others hide how many of these fail.
	Generates func(collect.Sample) bool
	// CacheInfo is the name, without the engine's prefix, of the family whose labels are the cache
	// configuration, and Cache reads them; "" if there is none.
	CacheInfo string
	Cache     func(*collect.Series) engine.CacheConfig
	// Skip, if set, reports series that repeat others, such as those of further ranks of one replica.
	Skip func(collect.Sample) bool
	// Finish, if set, completes a page by what follows from its other values.
	Finish func(*engine.Page)
	// Bare are prefixes of the families that the engine's page has even with its statistics switched off,
	// and StatsOff is the next step then; "" if that cannot be distinguished.
	Bare     []string
	StatsOff string
}

// meansOnly are the histograms of which a diagnosis reads means and counts, and no quantile.
var meansOnly = []engine.Hist{engine.HistE2E, engine.HistQueue, engine.HistDecode, engine.HistInference, engine.HistGenerationTokens}

// DiagnosisSeries returns the names, without the usual prefix, of the engine's series that a diagnosis depends
// on: those that a page is read for, without the buckets of histograms of which no rule and no figure has a
// quantile. A native histogram has the name of its family.
func (d *Dialect) DiagnosisSeries() []string {
	names := map[string]bool{}
	for wire, roles := range newTable(d).roles {
		for _, r := range roles {
			if r.Reading == ReadHist {
				names[r.wire] = true
			}
			if r.part != partBucket || !slices.Contains(meansOnly, engine.Hist(r.Index)) {
				names[wire] = true
			}
		}
	}
	var out []string
	for name := range names {
		if bare, ours := strings.CutPrefix(name, d.Engine.Families[0]); ours {
			out = append(out, bare)
		}
	}
	slices.Sort(out)
	return out
}

// role is one use of a wire name. A name may have several: the old per-token
// histogram replaces two newer ones.
type role struct {
	Target
	part part
	slot int    // index into build.best; all names of one target share it
	pref int    // position in the list of names, 0 is preferred
	wire string // family name on the page
	own  bool   // a family of the engine, not of the process or its HTTP server
}

// table maps wire names to roles.
type table struct {
	*Dialect
	roles map[string][]role
	slots int
	names []string // all families, for the filter
}

// newTable returns the table of a dialect.
func newTable(d *Dialect) *table {
	t := &table{Dialect: d, roles: map[string][]role{}}
	for _, m := range d.Engine.Metrics() {
		for _, to := range d.TargetsOf(m.Key) {
			for _, label := range slices.Sorted(maps.Keys(m.Labels)) {
				to = to.Where(label, m.Labels[label])
			}
			t.add(m, to)
		}
	}
	if d.CacheInfo != "" {
		for _, prefix := range d.Engine.Families {
			t.addRole(prefix+d.CacheInfo, role{Target: Target{Reading: readCacheInfo}, slot: t.slots, own: true})
		}
	}
	t.addRole("process_start_time_seconds", role{Target: Target{Reading: readStart}, slot: t.slots + 1})
	t.addRole("process_cpu_seconds_total", role{Target: Counter(engine.CounterProcessCPUSeconds), slot: t.slots + 2})
	if d.HTTP != "" {
		t.addRole(d.HTTP, role{Target: Target{Reading: readHTTP}, slot: t.slots + 3})
	}
	t.slots += 4
	return t
}

// add adds roles for one target under all names of a metric, in every spelling.
func (t *table) add(m catalog.Metric, to Target) {
	pref := 0
	for _, name := range m.WireNames() {
		for _, prefix := range t.Engine.Families {
			r := role{Target: to, slot: t.slots, pref: pref, wire: prefix + name, own: true}
			pref++
			if to.Reading != ReadHist {
				t.addRole(r.wire, r)
				continue
			}
			for _, p := range []part{partBucket, partSum, partCount} {
				r.part = p
				t.addRole(r.wire+p.suffix(), r)
			}
		}
	}
	t.slots++
	if !slices.Contains(t.Core, m.Key) {
		return
	}
	for _, prefix := range t.Engine.Families {
		t.addRole(prefix+strings.TrimSuffix(m.Names[0], "_total")+"_created", role{Target: Target{Reading: readCreated}, slot: t.slots, own: true})
	}
	t.slots++
}

func (t *table) addRole(wire string, r role) {
	if len(t.roles[wire]) == 0 {
		t.names = append(t.names, wire)
	}
	t.roles[wire] = append(t.roles[wire], r)
}

// filter passes the families of the table.
func (t *table) filter() *collect.Filter { return collect.NewExactFilter(t.names...) }
