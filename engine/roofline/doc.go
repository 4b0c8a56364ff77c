// Package roofline says what hardware allows: the documented formulas (classic)
// and a physical model of one engine step (physical), money, and the gain to
// expect of a change. It defines its own inputs, knows no server and no page,
// and computes only.
package roofline
