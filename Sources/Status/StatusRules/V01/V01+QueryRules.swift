import Core
package import StatusProtocol

extension V01 {
    /// What a query is answered, `V01.md` section 4.
    package enum QueryRules {
        /// Whom a query asks about, each once.
        package static func registrants(in query: Query) -> [KeyHash] {
            var seen: Set<KeyHash> = []
            return query.publicKeys.compactMap(KeyHash.init(bytes:)).filter { seen.insert($0).inserted }
        }

        /// A row for each device that is enabled: with the token, or with the list of those who may have it.
        package static func rows(of registrant: KeyHash, _ preferences: Preferences) -> [QueryInfo] {
            preferences.devices.filter(\.isEnabled).map { device in
                let list = device.filters?.allowedKeyList ?? []
                return QueryInfo(
                    accessToken: list.isEmpty ? preferences.accessToken : AccessToken(""), installationID: device.installationID,
                    publicKey: registrant.bytes, encryptedAccessTokens: list)
            }
        }

        /// What a row takes in an answer, roughly.
        package static func byteCount(of row: QueryInfo) -> Int {
            row.encryptedAccessTokens.reduce(256) { $0 + $1.count + 4 }
        }

        /// nil when there is no row: then there is no answer. Rows beyond a ``QueryBudget`` are left out.
        package static func answer(_ rows: [QueryInfo]) -> QueryResponse? {
            var budget = QueryBudget()
            let info = rows.filter { budget.admits(rowByteCount: byteCount(of: $0)) }
            return info.isEmpty ? nil : QueryResponse(info: info)
        }
    }
}
