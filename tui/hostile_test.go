package tui

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// spoiler changes parts of a value at random: what a snapshot may hold that no
// fixture has.
type spoiler struct {
	r *rand.Rand
	// odds is how seldom a part is changed: one in so many.
	odds int
}

func (sp *spoiler) hit() bool { return sp.r.IntN(sp.odds) == 0 }

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// spoil returns a copy of v with some of its parts changed. What v points to is
// copied too: fixtures are shared.
func (sp *spoiler) spoil(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return out
		}
		if sp.hit() {
			out.SetZero()
			return out
		}
		p := reflect.New(v.Type().Elem())
		p.Elem().Set(sp.spoil(v.Elem()))
		out.Set(p)
	case reflect.Struct:
		if _, ok := v.Interface().(time.Time); ok {
			return out
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(sp.spoil(v.Field(i)))
			}
		}
	case reflect.Slice:
		n := v.Len()
		if n == 0 || v.IsNil() {
			return out
		}
		if sp.hit() {
			n = pick(sp.r, 0, 1, n/2)
		}
		out.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			out.Index(i).Set(sp.spoil(v.Index(i)))
		}
	case reflect.Array:
		for i := range v.Len() {
			out.Index(i).Set(sp.spoil(v.Index(i)))
		}
	case reflect.Float64:
		if sp.hit() {
			out.SetFloat(pick(sp.r, 0, -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, 5e-324, 1e15))
		}
	case reflect.Int, reflect.Int64:
		if sp.hit() {
			out.SetInt(pick(sp.r, int64(0), -1, 1, math.MaxInt32, math.MaxInt64, math.MinInt64))
		}
	case reflect.String:
		if sp.hit() {
			out.SetString(pick(sp.r, "", "\x1b[2J", "模型名称很长模型名称很长", "\u202e\u00ad\u200d", "a\nb\tc", "\xff\xfe", "👩‍👩‍👧‍👦 e\u0301", " ", "Wörterbuchdefinitionsüberlängenausgleichsverfahrensordnungsentwurf"))
		}
	case reflect.Bool:
		if sp.hit() {
			out.SetBool(!v.Bool())
		}
	}
	return out
}

// TestHostileSnapshots draws snapshots that are torn, empty in places, and full of
// numbers that are none: whatever comes, there is a frame.
func TestHostileSnapshots(t *testing.T) {
	all := fixtures()
	const seeds = 500
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 5))
		f := all[r.IntN(len(all))]
		if f.s == nil {
			continue
		}
		sp := &spoiler{r: r, odds: pick(r, 3, 10, 40, 200)}
		snap := sp.spoil(reflect.ValueOf(*f.s)).Interface().(engine.Snapshot)
		snap.Phase = engine.Phase(r.IntN(int(engine.NumPhases)))
		w, h := pick(r, 20, 36, 60, 80, 101, 120, 171, 200, 250), pick(r, 6, 16, 24, 31, 45, 60)
		for v := range numViews {
			u := &look{glyphs: pick(r, cell.Unicode(), cell.ASCII()), view: v, filter: pick(r, "", "seat"), over: pick(r, overlayNone, overlayNone, overlayHelp)}
			u.scroll[v] = pick(r, 0, 3, toEnd)
			func() {
				defer func() {
					if p := recover(); p != nil {
						t.Fatalf("seed %d, %s, view %s at %dx%d: %v", seed, f.name, views()[v].name, w, h, p)
					}
				}()
				c, _ := frame(&snap, u, w, h)
				if err := holds(c.Plain(), w, h); err != nil {
					t.Fatalf("seed %d, %s, view %s at %dx%d: %v\n%s", seed, f.name, views()[v].name, w, h, err, c.Plain())
				}
			}()
		}
	}
}
