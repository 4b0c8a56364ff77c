package loop

import (
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// paced returns windows of two seconds with these rates and requests in the server.
func paced(rates, demand []float64) []engine.Window {
	out := make([]engine.Window, len(rates))
	for i := range out {
		out[i] = engine.Window{Index: i, Start: time.Duration(i) * engine.WindowLength, Duration: engine.WindowLength, Polls: 9, Evaluable: true,
			Running: stat.Some(demand[min(i, len(demand)-1)]), Waiting: stat.Some(0)}
		out[i].Delta[engine.CounterGenerationTokens] = stat.Some(2 * rates[i])
		out[i].Rate[engine.CounterGenerationTokens] = stat.Some(rates[i])
	}
	return out
}

func before(rate, demand float64) *engine.Diagnosis {
	return &engine.Diagnosis{Measured: []engine.NamedQuantity{
		{Name: "generation_tokens_per_s", Quantity: engine.Quantity{Value: stat.Some(rate)}},
		{Name: "running_mean", Quantity: engine.Quantity{Value: stat.Some(demand)}},
	}}
}

func TestSteady(t *testing.T) {
	for _, c := range []struct {
		name          string
		rates, demand []float64
		before        *engine.Diagnosis
		want          bool
	}{
		{"too few windows", []float64{100, 100}, []float64{8}, nil, false},
		{"level", []float64{100, 102, 99}, []float64{8}, nil, true},
		{"warming up", []float64{10, 500, 520}, []float64{8}, nil, false},
		{"warm", []float64{10, 500, 520, 510}, []float64{8}, nil, true},
		{"rising", []float64{100, 130, 160, 190, 220}, []float64{8}, nil, false},
		{"scatter without a trend", []float64{100, 180, 90, 170, 110}, []float64{8}, nil, true},
		{"clients come back", []float64{100, 100, 100}, []float64{4, 12, 20}, nil, false},
		{"one request more is none", []float64{100, 100, 100}, []float64{2, 2, 3}, nil, true},
		{"a pause of the load", []float64{100, 100, 0, 100, 100}, []float64{8}, nil, false},
		{"half of the clients are missing", []float64{100, 100, 100}, []float64{8}, before(400, 32), false},
		{"a faster server holds fewer", []float64{500, 500, 500}, []float64{8}, before(400, 32), true},
		{"all are back on a slower one", []float64{100, 100, 100}, []float64{32}, before(400, 32), true},
		{"nothing moves", []float64{0, 0, 0, 0}, []float64{0}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, why := steady(paced(c.rates, c.demand), c.before)
			if got != c.want || got != (why == "") {
				t.Errorf("steady = %v (%q), want %v", got, why, c.want)
			}
		})
	}
}

func TestABarelyLoadedServerIsNotCompared(t *testing.T) {
	for _, c := range []struct {
		name   string
		rate   float64
		demand float64
		want   bool
	}{
		{"one client of 32", 20, 1, true},
		{"all clients on a broken server", 20, 32, false},
		{"few requests on a fast one", 700, 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := paced([]float64{c.rate, c.rate, c.rate}, []float64{c.demand})
			if got := barelyLoaded(w, before(400, 32)); got != c.want {
				t.Errorf("barely loaded = %v, want %v", got, c.want)
			}
		})
	}
}

func TestBounded(t *testing.T) {
	b := bounded[int]{most: 10}
	var views [][]int
	for i := range 95 {
		b.add(i)
		views = append(views, b.view())
		v := b.view()
		if want := min(10, i+1); len(v) != want || v[len(v)-1] != i || v[0] != i+1-want || b.dropped() != i+1-want {
			t.Fatalf("after %d: %v, dropped %d", i, v, b.dropped())
		}
	}
	for i, v := range views {
		if v[len(v)-1] != i {
			t.Fatalf("the view after %d ends in %d now", i, v[len(v)-1])
		}
	}
}
