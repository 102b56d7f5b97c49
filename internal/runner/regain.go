package runner

import "github.com/sluice-ml/sluice/internal/engine"

// regaining keeps back, after a resume, the starts of what is below a node that holds locks according to its state but
// whose process must first ask for them again. The cost of a start and of a regained lock is the depth of a node, however
// many there are.
type regaining struct {
	lost map[engine.NodeID]bool // nodes, 0 for the run, whose locks are asked for
	held map[engine.NodeID]heldStart
	// behind are, for a node whose locks are asked for, the starts that wait for it first of all, in order.
	behind map[engine.NodeID][]engine.NodeID
}

// heldStart is a start that is kept back; taken out of held, it is forgotten where it is listed.
type heldStart struct {
	cmd   engine.StartTask
	after engine.NodeID
}

func newRegaining() *regaining {
	return &regaining{lost: map[engine.NodeID]bool{}, held: map[engine.NodeID]heldStart{}, behind: map[engine.NodeID][]engine.NodeID{}}
}

// note takes the locks that a resume asks for again from its commands.
func (r *regaining) note(s *engine.State, commands []engine.Command) {
	for _, c := range commands {
		lock, ok := c.(engine.AcquireLocks)
		if !ok {
			continue
		}
		if n := s.Node(lock.Node); lock.Node == 0 && s.Root != 0 || n != nil && n.Stage != engine.StageLocks {
			r.lost[lock.Node] = true
		}
	}
}

// hold keeps a start back where it is below a node whose locks are still to be regained.
func (r *regaining) hold(s *engine.State, c engine.StartTask) bool {
	if len(r.lost) == 0 {
		return false
	}
	at := engine.NodeID(0)
	for n := s.Node(c.Node); n != nil; n = s.Node(n.Parent) {
		if r.lost[n.ID] {
			at = n.ID
			break
		}
	}
	if !r.lost[at] {
		return false
	}
	r.held[c.Node] = heldStart{c, at}
	r.behind[at] = append(r.behind[at], c.Node)
	return true
}

// regained gives the starts that were kept back for a node that has its locks again: others may still keep them back.
func (r *regaining) regained(node engine.NodeID) []engine.StartTask {
	if !r.lost[node] {
		return nil
	}
	delete(r.lost, node)
	var out []engine.StartTask
	for _, id := range r.behind[node] {
		if h, ok := r.held[id]; ok && h.after == node {
			delete(r.held, id)
			out = append(out, h.cmd)
		}
	}
	delete(r.behind, node)
	return out
}

// drop takes a start back that is to be stopped; false where it is not kept back.
func (r *regaining) drop(node engine.NodeID) bool {
	_, ok := r.held[node]
	delete(r.held, node)
	return ok
}
