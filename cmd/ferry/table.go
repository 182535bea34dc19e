package main

import (
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// newTable returns a table without lines, its first column to the left, the others, which are numbers, to the right.
func newTable(headers ...string) table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "  ", ""
	t.SetStyle(style)
	header := make(table.Row, len(headers))
	configs := make([]table.ColumnConfig, len(headers))
	for i, h := range headers {
		header[i] = h
		align := text.AlignRight
		if i == 0 {
			align = text.AlignLeft
		}
		configs[i] = table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align}
	}
	t.SetColumnConfigs(configs)
	t.AppendHeader(header)
	return t
}
