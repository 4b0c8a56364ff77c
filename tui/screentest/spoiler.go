package screentest

import (
	"math"
	"math/rand/v2"
	"reflect"
	"time"
)

// Spoiler changes parts of a value at random, for snapshots that no fixture covers.
type Spoiler struct {
	Rand *rand.Rand
	// Odds is the rarity of a change: one part in Odds is changed.
	Odds int
}

// Pick returns a random element of a list.
func Pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func (sp *Spoiler) hit() bool { return sp.Rand.IntN(sp.Odds) == 0 }

// Spoil returns a copy of v with some parts changed. Pointed-to values are copied too, because
// fixtures are shared.
func (sp *Spoiler) Spoil(v reflect.Value) reflect.Value {
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
		p.Elem().Set(sp.Spoil(v.Elem()))
		out.Set(p)
	case reflect.Struct:
		if _, ok := v.Interface().(time.Time); ok {
			return out
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(sp.Spoil(v.Field(i)))
			}
		}
	case reflect.Slice:
		n := v.Len()
		if n == 0 || v.IsNil() {
			return out
		}
		if sp.hit() {
			n = Pick(sp.Rand, 0, 1, n/2)
		}
		out.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			out.Index(i).Set(sp.Spoil(v.Index(i)))
		}
	case reflect.Array:
		for i := range v.Len() {
			out.Index(i).Set(sp.Spoil(v.Index(i)))
		}
	case reflect.Float64:
		if sp.hit() {
			out.SetFloat(Pick(sp.Rand, 0, -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, 5e-324, 1e15))
		}
	case reflect.Int, reflect.Int64:
		if sp.hit() {
			out.SetInt(Pick(sp.Rand, int64(0), -1, 1, math.MaxInt32, math.MaxInt64, math.MinInt64))
		}
	case reflect.String:
		if sp.hit() {
			out.SetString(Pick(sp.Rand, "", "\x1b[2J", "模型名称很长模型名称很长", "\u202e\u00ad\u200d", "a\nb\tc", "\xff\xfe", "👩‍👩‍👧‍👦 e\u0301", " ", "Wörterbuchdefinitionsüberlängenausgleichsverfahrensordnungsentwurf"))
		}
	case reflect.Bool:
		if sp.hit() {
			out.SetBool(!v.Bool())
		}
	}
	return out
}
