package tuning

import (
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/page"
)

// RankTable returns the data-parallel ranks of a server's page: requests running and waiting, the KV usage,
// and the share of all requests in the server. A rank on which nothing has run counts as 0.
func RankTable(p *engine.Page) *page.Table {
	requests := func(r engine.Rank) page.Cell {
		in := r.Gauges[engine.GaugeRunning].Plus(r.Gauges[engine.GaugeWaiting])
		return page.Share(in.Div(p.Gauges[engine.GaugeRunning].Plus(p.Gauges[engine.GaugeWaiting])))
	}
	haveGauges := engine.HaveGauges(p.Ranks)
	gauge := func(g engine.Gauge, show func(engine.Rank) page.Cell) func(engine.Rank) page.Cell {
		return func(r engine.Rank) page.Cell {
			if !r.Gauges[g].OK && r.Untouched(haveGauges) {
				return page.Words("0")
			}
			return show(r)
		}
	}
	count := func(g engine.Gauge) func(engine.Rank) page.Cell {
		return gauge(g, func(r engine.Rank) page.Cell { return page.Amount(r.Gauges[g], "") })
	}
	return page.Tabulate(p.Ranks, []page.Field[engine.Rank]{
		page.Left("rank", page.Strong, func(r engine.Rank) string { return r.Name }),
		page.Right("running", page.Body, count(engine.GaugeRunning)),
		page.Right("waiting", page.Body, count(engine.GaugeWaiting)),
		page.Right("KV", page.Body, gauge(engine.GaugeKVUsage, func(r engine.Rank) page.Cell { return page.Amount(r.Gauges[engine.GaugeKVUsage], "ratio") })),
		page.Right("of all requests", page.Body, requests),
	})
}
