import Foundation

/// Which contents the files have that options name and SIGHUP reads again, to tell whether they changed although their paths did not.
struct FileContents: Sendable {
    /// Options whose values are paths of such files.
    private static let options = ["allow-keys", "deny-keys", "gorush-ca", "gorush-password-file", "gorush-token-file", "session-nodes"]
    private static let endpointKeys = ["ca", "password-file", "token-file"]

    /// By option, or by key of `gorush-endpoints`: path and hash of each file.
    private var files: [String: [String: Int]] = [:]

    /// Reads the files. A file that can't be read has no content: its user reports the error.
    init(values: [ServeOption.Value], gorush: [GorushSettings]) {
        for value in values where Self.options.contains(value.option) {
            for path in value.values { add(path, of: value.option) }
        }
        for entry in gorush.compactMap(\.entry) {
            for key in Self.endpointKeys {
                if let path = entry[key] { add(path, of: "\(ConfigurationFile.endpointsKey).\(key)") }
            }
        }
    }

    private mutating func add(_ path: String, of name: String) {
        files[name, default: [:]][path] = FileManager.default.contents(atPath: path).map { Array($0).hashValue }
    }

    /// The options and keys with files that have other contents than before, in alphabetical order. Other paths are no change here.
    func changes(since before: Self) -> [String] {
        files.filter { name, contents in
            contents.contains { path, content in before.files[name]?[path].map { $0 != content } ?? false }
        }.keys.sorted()
    }
}
