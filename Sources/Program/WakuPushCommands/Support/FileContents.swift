import Foundation

/// Which contents the files have that options name, to tell whether they changed although their paths did not.
struct FileContents: Sendable {
    /// By option, or by key of `gorush-endpoints`: path and hash of each file.
    private var files: [String: [String: Int]] = [:]

    /// Reads the files. A file that can't be read has no content: its user reports the error.
    init(values: [ServeOption.Value], gorush: [GorushSettings]) {
        let options = Set(ServeOption.all.filter(\.isFile).map(\.name))
        for value in values where options.contains(value.option) {
            for path in value.values { add(path, of: value.option) }
        }
        for entry in gorush.compactMap(\.entry) {
            for key in EndpointKey.allCases where key.option?.isFile == true {
                if let path = entry[key] { add(path, of: "\(ConfigurationFile.endpointsKey).\(key.rawValue)") }
            }
        }
    }

    private mutating func add(_ path: String, of name: String) {
        // A pipe has been read by now, and opening a named one would block.
        let file = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        guard (try? FileManager.default.attributesOfItem(atPath: file))?[.type] as? FileAttributeType == .typeRegular else { return }
        files[name, default: [:]][path] = FileManager.default.contents(atPath: path).map { Array($0).hashValue }
    }

    /// The options and keys with files that have other contents than before, in alphabetical order. Other paths are no change here.
    func changes(since before: Self) -> [String] {
        files.filter { name, contents in
            contents.contains { path, content in before.files[name]?[path].map { $0 != content } ?? false }
        }.keys.sorted()
    }
}
