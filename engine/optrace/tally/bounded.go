package tally

// bounded holds a value per key, for a limited number of keys.
type bounded[K comparable, V any] struct {
	most int
	of   map[K]*V
}

func newBounded[K comparable, V any](most int) bounded[K, V] {
	return bounded[K, V]{most, map[K]*V{}}
}

// get returns the value of a key, nil if there is no room for another one.
func (b *bounded[K, V]) get(key K) *V {
	v := b.of[key]
	if v == nil && len(b.of) < b.most {
		v = new(V)
		b.of[key] = v
	}
	return v
}

// getOr returns the value of a key or, if there is no room for another one, that of the key
// others with over set.
func (b *bounded[K, V]) getOr(key, others K) (v *V, over bool) {
	if v = b.get(key); v != nil {
		return v, false
	}
	if v = b.of[others]; v == nil {
		v = new(V)
		b.of[others] = v
	}
	return v, true
}
