//go:build long

package longtest

// Tests says that this is a build with the tag "long".
const Tests = true
