package flux

import _ "github.com/fluxcd/cli-utils/pkg/kstatus/status"
