package argoexpr

import (
	"fmt"
	"strings"
	"testing"
)

func TestCacheIsBounded(t *testing.T) {
	c := newCache[int](10, 1000)
	for i := range 1000 {
		c.put(fmt.Sprint(i), i, 4)
		if _, ok := c.get("0"); !ok {
			t.Fatalf("what is in use was forgotten after %d sources", i)
		}
	}
	if n := len(c.young) + len(c.old); n > 10 {
		t.Errorf("%d entries", n)
	}
	c.put(strings.Repeat("x", 200), 0, 200)
	if _, ok := c.get(strings.Repeat("x", 200)); ok {
		t.Error("a source as large as the cache was kept")
	}
	for i := range 100 {
		c.put(strings.Repeat("y", 100)+fmt.Sprint(i), i, 102)
	}
	if c.bytes > 500 {
		t.Errorf("%d bytes in one generation", c.bytes)
	}
}

func TestHostileTextsCompileInTime(t *testing.T) {
	for _, src := range []string{
		strings.Repeat("{{=", 1<<20),
		strings.Repeat("{", 1<<20) + "}}",
		strings.Repeat("{{a.", 1<<18) + "}}",
		strings.Repeat("{{item.", 1<<17) + strings.Repeat("}}", 1<<17),
		"{{" + strings.Repeat(".", 1<<20) + "}}",
		strings.Repeat("{{}}", 1<<18),
	} {
		if _, err := compileText(src, compileExpression); err != nil {
			t.Errorf("%s: %v", src[:10], err)
		}
	}
}
