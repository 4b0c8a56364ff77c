package enginepage

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// sum is a total over series. One invalid value makes the total absent, because a partial
// total would look like a counter that fell.
type sum struct {
	v   float64
	n   int  // values added
	bad bool // a value was invalid
}

func (s *sum) add(v float64) {
	if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		s.bad = true
		return
	}
	s.v += v
	s.n++
}

func (s *sum) max(v float64) {
	before := s.v
	if s.add(v); !s.bad && s.n > 1 {
		s.v = max(before, v)
	}
}

func (s *sum) opt() stat.Opt {
	if s.bad || s.n == 0 {
		return stat.None
	}
	return stat.Some(s.v)
}

// rankID distinguishes the engines of a page.
type rankID struct{ replica, engine string } // Ray's replica, and the data-parallel engine

// rank collects the values of one engine.
type rank struct {
	rankID
	gauges     [engine.NumGauges]sum
	generation sum
	prompt     sum
	steps      sum
	cache      engine.CacheConfig
	cached     bool // cache is set
}

func (r *rank) name() string {
	if r.replica == "" {
		return r.engine
	}
	return r.replica + "/" + r.engine
}

// build is the reusable state of parsing a page.
type build struct {
	dialect  *Dialect
	best     []int          // by slot: the lowest preference on the page
	models   map[string]int // series by model
	model    string         // the selected model
	ranks    []rank
	rankAt   map[rankID]int // in ranks
	counters [engine.NumCounters]sum
	hists    [engine.NumHists]histogram
	start    stat.Opt
	created  stat.Opt
	loose    engine.CacheConfig // cache configuration without an engine label
	hasLoose bool
	loras    []collect.Sample // the series of LoRA adapters, one for each combination so far
	pids     bool
	notes    []string
}

func (b *build) reset(t *table) {
	b.dialect = t.Dialect
	b.best = b.best[:0]
	for range t.slots {
		b.best = append(b.best, math.MaxInt)
	}
	if b.models == nil {
		b.models, b.rankAt = map[string]int{}, map[rankID]int{}
	}
	clear(b.models)
	clear(b.rankAt)
	b.ranks, b.notes = b.ranks[:0], b.notes[:0]
	b.counters = [engine.NumCounters]sum{}
	for i := range b.hists {
		b.hists[i].reset()
	}
	b.start, b.created = stat.None, stat.None
	b.loose, b.hasLoose, b.pids = engine.CacheConfig{}, false, false
	b.loras = b.loras[:0]
}

func (b *build) note(s string) {
	if !slices.Contains(b.notes, s) {
		b.notes = append(b.notes, s)
	}
}

// pickModel returns the first of the wanted models that the page has, else the one with the most
// series, the first by name among equals; "" if no series names a model.
func (b *build) pickModel(wanted ...string) string {
	for _, name := range wanted {
		if _, ok := b.models[name]; ok {
			return name
		}
	}
	best := ""
	for name, series := range b.models {
		if best == "" || series > b.models[best] || (series == b.models[best] && name < best) {
			best = name
		}
	}
	return best
}

// ofModel reports whether a sample belongs to the selected model or to no model.
func (b *build) ofModel(s collect.Sample) bool {
	name := s.Label("model_name")
	return name == "" || name == b.model
}

// rank returns the rank of a series and creates it if necessary.
func (b *build) rank(s collect.Sample) *rank {
	id := rankID{replica: s.Label(b.dialect.Replica), engine: s.Label(b.dialect.Rank)}
	i, ok := b.rankAt[id]
	if !ok {
		i = len(b.ranks)
		b.rankAt[id] = i
		b.ranks = append(b.ranks, rank{rankID: id})
	}
	return &b.ranks[i]
}

// add adds one sample to the target of its role.
func (b *build) add(role *role, s collect.Sample) {
	switch role.Reading {
	case ReadGauge:
		b.addGauge(engine.Gauge(role.Index), role, s)
	case ReadCounter:
		c := engine.Counter(role.Index)
		b.counters[c].add(s.Value)
		switch c {
		case engine.CounterGenerationTokens:
			b.rank(s).generation.add(s.Value)
		case engine.CounterPromptTokens:
			b.rank(s).prompt.add(s.Value)
		}
	case ReadHist:
		b.hists[role.Index].add(role, s)
		if engine.Hist(role.Index) == engine.HistIterationTokens && role.part == partCount {
			b.rank(s).steps.add(s.Value)
		}
	case readCreated:
		b.created = later(b.created, s.Value)
	case readStart:
		b.start = later(b.start, s.Value)
	case readHTTP:
		b.addHTTP(s)
	case readCacheInfo:
		b.addCache(s)
	case ReadCacheValue:
		b.addCacheValue(CacheValue(role.Index), s)
	case ReadLoRA:
		// The value is the time at which the series was set. Earlier combinations stay on the page.
		b.loras = append(b.loras, s)
	}
}

// addGauge adds a gauge to its rank. With a pid label (0.9.2 to 0.11 with several API
// servers) every process reports its own copy and all but one are stale zeros, so the
// largest counts. It sums over other unknown labels, except for gauges whose sum has no
// meaning.
func (b *build) addGauge(g engine.Gauge, role *role, s collect.Sample) {
	v, r := s.Value, b.rank(s)
	switch g {
	case engine.GaugeKVUsage, engine.GaugeCPUKVUsage, engine.GaugePrefixHitRate:
		if g == engine.GaugePrefixHitRate && v == -1 {
			return // V0's "not available"
		}
		o, ok := ratio(v)
		if !ok {
			b.note(fmt.Sprintf("%s is %g, which is not a ratio between 0 and 1, so it is ignored", role.wire, v))
			v = math.NaN()
		} else {
			v = o.V
		}
		r.gauges[g].max(v)
	case engine.GaugeAsleep:
		// There is one series for each state; that of the current state is 1. A series
		// without the label is invalid.
		switch state := s.Label("sleep_state"); {
		case state == "" || (v != 0 && v != 1):
			r.gauges[g].bad = true
		case state == "awake":
			r.gauges[g].max(1 - v)
		default:
			r.gauges[g].max(v)
		}
	case engine.GaugeMaxNumSeqs:
		r.gauges[g].max(v)
	default:
		if s.Label("pid") != "" {
			r.gauges[g].max(v)
		} else {
			r.gauges[g].add(v)
		}
		if g == engine.GaugeRunning && s.Label("server") != "" && s.Label("model_name") == "" {
			b.note("the page covers several servers, so it is a router's; give --url of one server to diagnose it")
		}
		if r.gauges[g].bad {
			b.note(fmt.Sprintf("%s is %g: ignored", role.wire, s.Value))
		}
	}
	b.pids = b.pids || s.Label("pid") != ""
}

// addHTTP adds answered requests by status class. Once the family exists, a class without
// a series had no requests.
func (b *build) addHTTP(s collect.Sample) {
	classes := [...]struct {
		digit   byte
		counter engine.Counter
	}{{'2', engine.CounterHTTP2xx}, {'4', engine.CounterHTTP4xx}, {'5', engine.CounterHTTP5xx}}
	status := s.Label(b.dialect.Status)
	for _, c := range classes {
		v := 0.0
		if status != "" && status[0] == c.digit && (b.dialect.Generates == nil || b.dialect.Generates(s)) {
			v = s.Value
		}
		b.counters[c.counter].add(v)
	}
}

func later(o stat.Opt, v float64) stat.Opt {
	if !(v > 0) || math.IsInf(v, 0) {
		return o
	}
	return o.Max(stat.Some(v))
}

// addCache stores the labels of the cache configuration, whose value is always 1.
func (b *build) addCache(s collect.Sample) {
	c := b.dialect.Cache(s.Series)
	if s.Label(b.dialect.Rank) == "" && s.Label(b.dialect.Replica) == "" {
		b.loose, b.hasLoose = c, true
		return
	}
	r := b.rank(s)
	r.cache, r.cached = c, true
}

// addCacheValue stores a value of the cache configuration in its rank.
func (b *build) addCacheValue(v CacheValue, s collect.Sample) {
	if !(s.Value > 0) || s.Value > math.MaxInt32 {
		return
	}
	r, text := b.rank(s), strconv.Itoa(int(s.Value))
	switch r.cached = true; v {
	case CacheBlocks:
		r.cache.NumGPUBlocks = text
	case CacheTokens:
		r.cache.KVCacheSizeTokens = text
	}
}

// loraRecent is how long ago an adapter was listed for the last time if its requests may be waiting.
const loraRecent = 30.0 // seconds

// finishLoRA sets the gauges of LoRA adapters. They have no engine label, so they belong to no rank. V1
// learns of a request with its first token, so that both labels list the adapters that run
// (LoRARequestStates in v1/metrics/stats.py): those listed a moment ago wait.
func (b *build) finishLoRA(p *engine.Page) {
	if len(b.loras) == 0 {
		return
	}
	latest := slices.MaxFunc(b.loras, func(x, y collect.Sample) int { return cmp.Compare(x.Value, y.Value) })
	most, err := strconv.ParseFloat(latest.Label("max_lora"), 64)
	if err == nil && most < 1 {
		return // V0 has the series without LoRA too
	}
	running, recent := map[string]bool{}, map[string]bool{}
	addNames(running, latest.Label("running_lora_adapters"))
	for _, s := range b.loras {
		if s.Value >= latest.Value-loraRecent {
			addNames(recent, s.Label("running_lora_adapters"))
			addNames(recent, s.Label("waiting_lora_adapters"))
		}
	}
	now := float64(len(running))
	if err == nil {
		p.Gauges[engine.GaugeMaxLoRAs] = stat.Some(most)
		now = min(now, most)
	}
	p.Gauges[engine.GaugeRunningLoRAs], p.Gauges[engine.GaugeWaitingLoRAs] = stat.Some(now), stat.Some(float64(len(recent))-now)
}

// addNames adds those of a list, separated by commas.
func addNames(to map[string]bool, list string) {
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			to[name] = true
		}
	}
}

// finishRanks sets the page's ranks, sorted, and its gauges over all ranks.
func (b *build) finishRanks(p *engine.Page) {
	if b.hasLoose && len(b.ranks) == 0 {
		b.ranks = append(b.ranks, rank{})
	}
	slices.SortFunc(b.ranks, func(x, y rank) int {
		if c := rankOrder(x.replica, y.replica); c != 0 {
			return c
		}
		return rankOrder(x.engine, y.engine)
	})
	p.Ranks = make([]engine.Rank, len(b.ranks))
	for i := range b.ranks {
		from, to := &b.ranks[i], &p.Ranks[i]
		to.Name = Clip(from.name())
		to.Generation, to.Prompt, to.Steps = from.generation.opt(), from.prompt.opt(), from.steps.opt()
		if to.Cache = from.cache; !from.cached && b.hasLoose {
			to.Cache = b.loose
		}
		for g := range from.gauges {
			to.Gauges[g] = from.gauges[g].opt()
		}
		if !to.Gauges[engine.GaugeWaiting].OK {
			to.Gauges[engine.GaugeWaiting] = to.Gauges[engine.GaugeWaitingCapacity].Plus(to.Gauges[engine.GaugeWaitingDeferred])
		}
		p.KVUsageMax = p.KVUsageMax.Max(to.Gauges[engine.GaugeKVUsage])
	}
	for g := range p.Gauges {
		p.Gauges[g] = b.overRanks(engine.Gauge(g), p.Ranks)
	}
	if b.pids {
		b.note("gauges occur once per process (pid label); the largest is used")
	}
}

// overRanks merges a gauge over ranks: the mean of usages, the sum of counts, asleep if
// any is. A rank with an invalid value makes it absent; a rank without the gauge (named
// only by a counter) does not.
func (b *build) overRanks(g engine.Gauge, ranks []engine.Rank) stat.Opt {
	total, n, most := 0.0, 0, stat.None
	for i := range ranks {
		if b.ranks[i].gauges[g].bad {
			return stat.None
		}
		if o := ranks[i].Gauges[g]; o.OK {
			total, n, most = total+o.V, n+1, most.Max(o)
		}
	}
	switch {
	case n == 0:
		return stat.None
	case g == engine.GaugeAsleep:
		return most
	case g == engine.GaugeKVUsage, g == engine.GaugeCPUKVUsage, g == engine.GaugePrefixHitRate:
		return stat.Some(total / float64(n))
	}
	return stat.Some(total)
}
