// Package roofline computes the limits of hardware: the PROFILE formulas (classic), a physical model
// of one engine step (physical), the cost of tokens, and the predicted gain of a change.
//
// Ideal is an upper bound of the hardware: every peak reached, no fixed time. Achievable is an
// estimate for efficient software. Its error is given as a range, so a measurement may exceed it.
package roofline
