public import ArgumentParser
import Foundation
public import Logging
import PushNode

enum LogFormat: String, ExpressibleByArgument, CaseIterable {
    case text
    case json
}

extension Logger.Level: @retroactive ExpressibleByArgument {}

/// Writes a line per record to standard error: `2026-01-02T03:04:05.678Z info node started key=…`, or the same as JSON.
struct LineLogHandler: LogHandler {
    let format: LogFormat
    private let level: LogLevel
    /// The level set on this logger only.
    private var ownLevel: Logger.Level?
    var metadata: Logger.Metadata = [:]

    init(format: LogFormat, level: LogLevel) {
        self.format = format
        self.level = level
    }

    init(format: LogFormat, level: Logger.Level) {
        self.init(format: format, level: LogLevel(level))
    }

    var logLevel: Logger.Level {
        get { ownLevel ?? level.current }
        set { ownLevel = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let fields = metadata.merging(event.metadata ?? [:]) { _, new in new }.sorted { $0.key < $1.key }
        let time = Date().formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
        let line = Self.line(
            [("time", time), ("level", event.level.rawValue), ("message", event.message.description)],
            fields: fields.map { ($0.key, $0.value.description) }, format: format)
        // A line that can't be written is dropped: a failing log must not stop the node.
        StandardStream.write(line + "\n", to: StandardStream.error)
    }

    /// - Parameters:
    ///   - head: time, level and message, written without their names in text format.
    ///   - fields: the metadata.
    ///   - format: the format of the line.
    static func line(_ head: [(name: String, value: String)], fields: [(name: String, value: String)], format: LogFormat) -> String {
        switch format {
        case .text: Output.printable((head.map(\.value) + fields.map { "\($0.name)=\(quoted($0.value))" }).joined(separator: " "))
        case .json: json(head + fields)
        }
    }

    private static func quoted(_ text: String) -> String {
        // JSON's escapes for control characters, where it has some; the others are escaped with the line.
        text.unicodeScalars.contains { $0.properties.isWhitespace || $0.value < 0x20 || $0 == "\"" || $0 == "=" } ? json(text) : text
    }

    private static func json(_ fields: [(name: String, value: String)]) -> String {
        "{" + fields.map { "\(json($0.name)):\(json($0.value))" }.joined(separator: ",") + "}"
    }

    private static func json(_ text: String) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        return (try? encoder.encode(text)).map { String(decoding: $0, as: UTF8.self) } ?? "\"\""
    }
}

extension Logger {
    /// Prints warnings and errors, for the demos.
    package static let warnings = Logger(label: "waku-push") { _ in LineLogHandler(format: .text, level: .warning) }
}
