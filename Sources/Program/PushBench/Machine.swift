import Foundation

/// The machine and build. Figures of different machines or builds can't be compared.
struct Machine: Sendable, Encodable {
    let processor: String
    let cores: Int
    let memoryBytes: UInt64
    let system: String
    /// `release` or `debug`.
    let build: String

    init() {
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
