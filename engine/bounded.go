package engine

// bounded is a list that only grows at its end and keeps the latest entries. What
// view hands out is never written again, and handing it out copies nothing.
type bounded[T any] struct {
	all  []T
	most int // entries kept
	gone int // entries let go of all
}

// add appends an entry. Now and then, when twice as many are held as are kept,
// the latest move to an array of their own: the old one may still be looked at.
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

// dropped is how many entries are no longer in view.
func (b *bounded[T]) dropped() int { return b.gone + max(0, len(b.all)-b.most) }
