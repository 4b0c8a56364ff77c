package loop

// bounded is an append-only list that keeps the latest entries. Its views are immutable and
// share its memory.
type bounded[T any] struct {
	all  []T
	most int // entries to keep
	gone int // entries dropped from all
}

// add appends an entry. At twice the number of entries to keep, the latest move to a new array,
// because views of the old one may still be in use.
func (b *bounded[T]) add(v T) {
	if len(b.all) >= 2*b.most {
		b.gone += len(b.all) - b.most
		b.all = append(make([]T, 0, 2*b.most), b.all[len(b.all)-b.most:]...)
	}
	b.all = append(b.all, v)
}

// view returns the latest entries, oldest first.
func (b *bounded[T]) view() []T {
	n := len(b.all)
	return b.all[max(0, n-b.most):n:n]
}

// dropped returns the number of entries that are no longer in view.
func (b *bounded[T]) dropped() int { return b.gone + max(0, len(b.all)-b.most) }
