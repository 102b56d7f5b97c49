// Package kube keeps the journals of runs on a Kubernetes cluster that has no database: as objects of the kind RunJournal,
// beside the Workflow and owned by it.
//
// A run's events are a chain of objects ("chunks"), each named by the position of its first event. A batch of events is
// one JSON merge patch that adds one key to the last chunk, so that what is sent does not depend on what is there. The patch
// that fills a chunk also closes it, and the next batch makes the next chunk. Both are refused when someone else came first:
// the patch carries the chunk's resourceVersion, and the new chunk's name is taken. So two controllers that both believe to
// own a run cannot write two histories.
//
// Chunks are small, because the API server writes a whole object to etcd for each patch and etcd keeps every version until
// it is compacted; see [chunkBytes]. A value that is too large for an object is kept in pieces beside the chain ("blobs"), named
// by what is in them, and the chain refers to it: it is there only once the reference is.
//
// After an answer that says neither yes nor no (a timeout, a broken connection, a conflict with one's own earlier attempt) the
// chunk is read back: the value at the position is either ours, byte for byte, or it is not.
package kube
