"""Pictures of answers: one description, drawn by matplotlib or as SVG.

    chart       what is drawn: panels, points with margins, axes, what was left out
    axes        the ends and ticks of an axis, for numbers and for times
    figure      a chart as a matplotlib figure: answer.plot(), `dither ask --plot`, notebooks
    svg         a chart as SVG, styled by the page around it: the console

Imports plots only (the colours, and how a figure is made). A renderer decides nothing about the content: every point, margin,
tick and title comes from the chart, so all pictures of an answer show the same.
"""
