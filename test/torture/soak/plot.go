package soak

import (
	"fmt"
	"html"
	"strings"
	"time"
)

const (
	plotWidth, plotHeight = 860.0, 180.0
	plotLeft, plotTop     = 70.0, 10.0
)

// Page returns an HTML page with a plot of each series, its trend, and a verdict.
func Page(title string, all []*Series, warmUp time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<!doctype html><html lang="en"><meta charset="utf-8"><title>%[1]s</title>
<style>body{font:14px system-ui,sans-serif;margin:2em;max-width:980px}
h2{font-size:1em;margin:1.5em 0 .3em}.bad{color:#b00020}
svg{background:#fafafa;border:1px solid #ddd}</style>
<h1>%[1]s</h1><p>The shaded part is the warm-up and does not count. The line is the trend after it.</p>
`, html.EscapeString(title))
	for _, s := range all {
		plot(&b, s, warmUp)
	}
	b.WriteString("</html>\n")
	return b.String()
}

func plot(b *strings.Builder, s *Series, warmUp time.Duration) {
	t := s.Trend(warmUp)
	class, verdict := "", "steady"
	if s.Grows(t) {
		class, verdict = ` class="bad"`, "GROWS"
	}
	fmt.Fprintf(b, "<h2%s>%s: %s (%+.2f %s/h ± %.2f)</h2>\n", class, html.EscapeString(s.Name), verdict, t.PerHour, s.Unit,
		3*t.Error)
	if len(s.Points) < 2 {
		b.WriteString("<p>too few samples</p>\n")
		return
	}
	end, top := s.Points[len(s.Points)-1].At, 1.0
	for _, p := range s.Points {
		top = max(top, p.Value*1.1)
	}
	x := func(at time.Duration) float64 { return plotLeft + plotWidth*float64(at)/float64(end) }
	y := func(v float64) float64 { return plotTop + plotHeight*(1-v/top) }
	fmt.Fprintf(b, `<svg width="%.0f" height="%.0f" role="img" aria-label="%s over time">`, plotLeft+plotWidth+20,
		plotTop+plotHeight+30, html.EscapeString(s.Name))
	fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="#eee"/>`, plotLeft, plotTop,
		x(min(warmUp, end))-plotLeft, plotHeight)
	for _, f := range []float64{0, 0.5, 1} {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" font-size="11" text-anchor="end">%.4g %s</text>`+
			`<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#ddd"/>`,
			plotLeft-6, y(top*f)+4, top*f, s.Unit, plotLeft, plotLeft+plotWidth, y(top*f), y(top*f))
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" font-size="11" text-anchor="middle">%v</text>`,
			x(time.Duration(f*float64(end))), plotTop+plotHeight+18, time.Duration(f*float64(end)).Round(time.Second))
	}
	var points []string
	for _, p := range s.Points {
		points = append(points, fmt.Sprintf("%.1f,%.1f", x(p.At), y(p.Value)))
	}
	fmt.Fprintf(b, `<polyline fill="none" stroke="#1565c0" points="%s"/>`, strings.Join(points, " "))
	if t.Window > 0 {
		fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#b00020" stroke-dasharray="4"/>`,
			x(warmUp), y(t.Start), x(warmUp+t.Window), y(t.Start+t.PerHour*t.Window.Hours()))
	}
	b.WriteString("</svg>\n")
}
