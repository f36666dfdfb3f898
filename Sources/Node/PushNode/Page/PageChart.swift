import NodeMetrics
import Core

/// A chart as a figure with an SVG: lines over time, with the scale and the latest values as text.
struct PageChart {
    private static let width = 600.0
    private static let height = 120.0

    let chart: PageFigures.Chart
    let times: [Timestamp]

    func figure(id: String) -> HTML {
        let top = Self.niceTop(chart.lines.flatMap(\.values).max() ?? 0)
        let legend: [HTML] = chart.lines.enumerated().map { index, line in
            """
            <li><svg class="dot" viewBox="0 0 10 10"><circle class="line\(index + 1)" cx="5" cy="5" r="5"/></svg>\(line.name) \
            <b>\((line.values.last ?? 0).short)</b></li>
            """
        }
        let paths: [HTML] = chart.lines.enumerated().map { index, line in
            let points = points(line.values, top)
            guard points.count > 1 else { return "" }
            let path = points.map { "\($0.x.short),\($0.y.short)" }.joined(separator: " ")
            let area: HTML =
                chart.lines.count == 1
                ? """
                <polygon class="area\(index + 1)" points="\(points[0].x.short),\(Self.height.short) \(path) \
                \(points[points.count - 1].x.short),\(Self.height.short)"/>
                """ : ""
            return "\(area)<polyline class=\"stroke\(index + 1)\" points=\"\(path)\"/>"
        }
        return """
            <figure data-live="\(id)"><figcaption>\(chart.title) <small>\(chart.unit)</small></figcaption>
            <div class="plot"><span class="top">\(top.short)</span>
            <svg viewBox="0 0 600 120" preserveAspectRatio="none" role="img" aria-label="\(chart.title), \(chart.unit)">\
            <path class="grid" d="M0 0.5H600M0 60H600M0 119.5H600"/>\(paths)</svg></div>
            <p class="axis"><span>\(age) ago</span><span class="reading"></span><span>now</span></p>
            <ul class="legend">\(legend)</ul></figure>
            """
    }

    private var age: String {
        guard let first = times.first, let last = times.last else { return "0 s" }
        return last.since(first).inWords
    }

    /// Positioned by time, so that irregular intervals are shown correctly.
    private func points(_ values: [Double], _ top: Double) -> [(x: Double, y: Double)] {
        guard let first = times.first, let last = times.last, last > first else { return [] }
        let span = last.since(first).seconds
        return zip(times, values).map { time, value in
            (time.since(first).seconds / span * Self.width, Self.height - value / top * (Self.height - 2) - 1)
        }
    }

    /// The next higher of 1, 2, 5, 10, …
    static func niceTop(_ value: Double) -> Double {
        var top = 1.0
        while top < value {
            if top * 2 >= value { return top * 2 }
            if top * 5 >= value { return top * 5 }
            top *= 10
        }
        return top
    }
}

extension Double {
    /// With at most one digit after the point.
    var short: String {
        let rounded = (self * 10).rounded() / 10
        return rounded == rounded.rounded() && magnitude < 1e15 ? Int(rounded).grouped.replacing(",", with: "") : "\(rounded)"
    }
}
