package hook_test

import (
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/hook"
	"github.com/sluice-ml/sluice/internal/hook/cache"
	"github.com/sluice-ml/sluice/internal/hook/lineage"
	"github.com/sluice-ml/sluice/internal/runner"
)

// What the parts are for one another.
var (
	_ runner.Hooks   = (*hook.Dispatcher)(nil)
	_ hook.Sink      = runner.Sink(nil)
	_ engine.Matcher = (&hook.Conditions{}).Match
	_ hook.Builtin   = (*cache.Cache)(nil).FromSettings
	_ hook.Builtin   = (*lineage.Plugin)(nil).FromSettings
)
