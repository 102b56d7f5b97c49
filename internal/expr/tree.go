package expr

// Tree is a [Scope] of nested maps.
type Tree map[string]any

// Lookup implements [Scope].
func (t Tree) Lookup(path []string) (any, Presence) {
	var v any = map[string]any(t)
	for _, step := range path {
		in, ok := v.(map[string]any)
		if !ok {
			return nil, Absent
		}
		if v, ok = in[step]; !ok {
			return nil, Absent
		}
	}
	return v, Present
}
