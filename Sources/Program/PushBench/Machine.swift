import Foundation

/// The machine and build. Figures of different machines or builds can't be compared.
package struct Machine: Sendable, Encodable {
    package let processor: String
    package let cores: Int
    package let memoryBytes: UInt64
    package let system: String
    /// `release` or `debug`.
    package let build: String

    package init() {
        let lines = String(decoding: FileManager.default.contents(atPath: "/proc/cpuinfo") ?? Data(), as: UTF8.self).split(separator: "\n")
        let model = lines.first { $0.hasPrefix("model name") || $0.hasPrefix("Model") }
        processor = model?.split(separator: ":", maxSplits: 1).last.map { $0.trimmingCharacters(in: .whitespaces) } ?? "unknown"
        cores = ProcessInfo.processInfo.activeProcessorCount
        memoryBytes = ProcessInfo.processInfo.physicalMemory
        system = ProcessInfo.processInfo.operatingSystemVersionString
        #if DEBUG
            build = "debug"
        #else
            build = "release"
        #endif
    }
}
