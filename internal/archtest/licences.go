package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Licences are the modules that the ferry command, the codecs and telemetry link, each with the licence in its file.
// Whoever adds or updates a module that is not as it says here looks at it, and changes the table.
var Licences = map[string]string{
	"charm.land/bubbletea/v2":                                         "MIT",
	"github.com/DataDog/zstd":                                         "BSD-3-Clause",
	"github.com/HdrHistogram/hdrhistogram-go":                         "MIT",
	"github.com/RaduBerinde/axisds":                                   "Apache-2.0",
	"github.com/RaduBerinde/btreemap":                                 "Apache-2.0",
	"github.com/beorn7/perks":                                         "MIT",
	"github.com/cenkalti/backoff/v5":                                  "MIT",
	"github.com/cespare/xxhash/v2":                                    "MIT",
	"github.com/charmbracelet/colorprofile":                           "MIT",
	"github.com/charmbracelet/ultraviolet":                            "MIT",
	"github.com/charmbracelet/x/ansi":                                 "MIT",
	"github.com/charmbracelet/x/term":                                 "MIT",
	"github.com/charmbracelet/x/termios":                              "MIT",
	"github.com/charmbracelet/x/windows":                              "MIT",
	"github.com/clipperhouse/displaywidth":                            "MIT",
	"github.com/clipperhouse/uax29/v2":                                "MIT",
	"github.com/cockroachdb/crlib":                                    "Apache-2.0",
	"github.com/cockroachdb/errors":                                   "Apache-2.0",
	"github.com/cockroachdb/logtags":                                  "Apache-2.0",
	"github.com/cockroachdb/pebble/v2":                                "BSD-3-Clause",
	"github.com/cockroachdb/redact":                                   "Apache-2.0",
	"github.com/cockroachdb/swiss":                                    "Apache-2.0",
	"github.com/cockroachdb/tokenbucket":                              "Apache-2.0",
	"github.com/coreos/go-oidc/v3":                                    "Apache-2.0",
	"github.com/danielgtaylor/huma/v2":                                "MIT",
	"github.com/expr-lang/expr":                                       "MIT",
	"github.com/fxamacker/cbor/v2":                                    "MIT",
	"github.com/getsentry/sentry-go":                                  "MIT",
	"github.com/go-jose/go-jose/v4":                                   "Apache-2.0",
	"github.com/go-logr/logr":                                         "Apache-2.0",
	"github.com/go-logr/stdr":                                         "Apache-2.0",
	"github.com/goccy/go-yaml":                                        "MIT",
	"github.com/gogo/protobuf":                                        "BSD-3-Clause",
	"github.com/golang/snappy":                                        "BSD-3-Clause",
	"github.com/google/uuid":                                          "BSD-3-Clause",
	"github.com/grpc-ecosystem/grpc-gateway/v2":                       "BSD-3-Clause",
	"github.com/jedib0t/go-pretty/v6":                                 "MIT",
	"github.com/klauspost/compress":                                   "Apache-2.0",
	"github.com/kr/pretty":                                            "MIT",
	"github.com/kr/text":                                              "MIT",
	"github.com/lucasb-eyer/go-colorful":                              "MIT",
	"github.com/mattn/go-runewidth":                                   "MIT",
	"github.com/minio/minlz":                                          "Apache-2.0",
	"github.com/muesli/cancelreader":                                  "MIT",
	"github.com/munnerz/goautoneg":                                    "BSD-3-Clause",
	"github.com/netresearch/go-cron":                                  "MIT",
	"github.com/pierrec/lz4/v4":                                       "BSD-3-Clause",
	"github.com/pkg/errors":                                           "BSD-2-Clause",
	"github.com/prometheus/client_golang":                             "Apache-2.0",
	"github.com/prometheus/client_model":                              "Apache-2.0",
	"github.com/prometheus/common":                                    "Apache-2.0",
	"github.com/prometheus/procfs":                                    "Apache-2.0",
	"github.com/redis/go-redis/v9":                                    "BSD-2-Clause",
	"github.com/rivo/uniseg":                                          "MIT",
	"github.com/rogpeppe/go-internal":                                 "BSD-3-Clause",
	"github.com/spf13/cobra":                                          "Apache-2.0",
	"github.com/spf13/pflag":                                          "BSD-3-Clause",
	"github.com/twmb/avro":                                            "MIT",
	"github.com/twmb/franz-go":                                        "BSD-3-Clause",
	"github.com/twmb/franz-go/pkg/kadm":                               "BSD-3-Clause",
	"github.com/twmb/franz-go/pkg/kfake":                              "BSD-3-Clause",
	"github.com/twmb/franz-go/pkg/kmsg":                               "BSD-3-Clause",
	"github.com/twmb/franz-go/pkg/sr":                                 "BSD-3-Clause",
	"github.com/ugorji/go/codec":                                      "MIT",
	"github.com/wneessen/go-mail":                                     "MIT",
	"github.com/x448/float16":                                         "MIT",
	"github.com/xo/terminfo":                                          "MIT",
	"go.opentelemetry.io/auto/sdk":                                    "Apache-2.0",
	"go.opentelemetry.io/otel":                                        "Apache-2.0",
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace":               "Apache-2.0",
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp": "Apache-2.0",
	"go.opentelemetry.io/otel/metric":                                 "Apache-2.0",
	"go.opentelemetry.io/otel/sdk":                                    "Apache-2.0",
	"go.opentelemetry.io/otel/trace":                                  "Apache-2.0",
	"go.opentelemetry.io/proto/otlp":                                  "Apache-2.0",
	"go.uber.org/atomic":                                              "MIT",
	"golang.org/x/crypto":                                             "BSD-3-Clause",
	"golang.org/x/exp":                                                "BSD-3-Clause",
	"golang.org/x/net":                                                "BSD-3-Clause",
	"golang.org/x/oauth2":                                             "BSD-3-Clause",
	"golang.org/x/sync":                                               "BSD-3-Clause",
	"golang.org/x/sys":                                                "BSD-3-Clause",
	"golang.org/x/text":                                               "BSD-3-Clause",
	"golang.org/x/time":                                               "BSD-3-Clause",
	"google.golang.org/genproto/googleapis/api":                       "Apache-2.0",
	"google.golang.org/genproto/googleapis/rpc":                       "Apache-2.0",
	"google.golang.org/grpc":                                          "Apache-2.0",
	"google.golang.org/protobuf":                                      "BSD-3-Clause",
}

// permitted ask for nothing but to be named.
var permitted = []string{"Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause"}

var licenceFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying)(\.txt|\.md)?$`)

// licenceIn names the licence of a module by the sentences that only it has, "" when it is another one.
func licenceIn(dir string) (string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, f := range files {
		if f.IsDir() || !licenceFile.MatchString(f.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		return licenceOf(string(text)), err
	}
	return "", fmt.Errorf("no licence file in %s", dir)
}

func licenceOf(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	has := func(s string) bool { return strings.Contains(text, s) }
	switch {
	case has("Apache License Version 2.0"):
		return "Apache-2.0"
	case has("Permission is hereby granted, free of charge"):
		return "MIT"
	case has("Redistribution and use in source and binary forms") && has("endorse or promote products"):
		return "BSD-3-Clause"
	case has("Redistribution and use in source and binary forms"):
		return "BSD-2-Clause"
	}
	return ""
}
