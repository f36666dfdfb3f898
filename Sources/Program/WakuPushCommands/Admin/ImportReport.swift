/// What an import found in a database, and did.
struct ImportReport: Encodable {
    let isDryRun: Bool
    /// The key hash of the server's identity; empty if a dry run found none.
    var identity = ""
    /// Rows that can be imported.
    var registrations = 0
    var tombstones = 0
    /// Numbers of rows that can't be imported, by reason.
    var refused: [String: Int] = [:]
    var imported = 0
    /// Rows that are stored already with the same or a higher version.
    var kept = 0
    var derivedKeys = 0

    init(isDryRun: Bool) {
        self.isDryRun = isDryRun
    }

    var refusedCount: Int { refused.values.reduce(0, +) }

    func print(asJSON: Bool) throws {
        if asJSON { return try Output.json(self) }
        let found = [
            ("server", identity.isEmpty ? "not in the database" : identity), ("registrations", "\(registrations)"),
            ("unregistered", "\(tombstones)"), ("unusable", "\(refusedCount)"),
        ]
        let done = [("imported", "\(imported)"), ("kept", "\(kept)"), ("derived keys", "\(derivedKeys)")]
        Output.fields(isDryRun ? found : found + done)
        for (reason, count) in refused.sorted(by: { $0.key < $1.key }) { Output.line("  \(count)  \(reason)") }
        Output.line("Grants are not verified: status-go keeps the hash of a client's key only, and verified them when clients registered.")
    }
}
