//go:build !unix

package binary

import "os"

// identityOf returns the zero identity on this system, where files cannot be compared by
// number.
func identityOf(path string) (identity, error) {
	_, err := os.Stat(path)
	return identity{}, err
}
