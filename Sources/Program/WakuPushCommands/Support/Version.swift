import CVersion

package enum Version {
    static let number = "0.2.0"
    /// The version, and the commit if the build has one: `0.2.0 (2121ae05b3c2)`.
    package static let current: String = {
        let commit = String(cString: waku_push_commit()).prefix(12)
        return commit.isEmpty ? number : "\(number) (\(commit))"
    }()
}
