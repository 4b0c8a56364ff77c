// Package serverdir manages the directory of a server below the user's state directory: the
// lock against a second tuner, the journal of runs, exact launches for reverts, and the
// measurements of earlier runs.
package serverdir
