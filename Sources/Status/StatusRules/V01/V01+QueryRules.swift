import Core
package import StatusProtocol

extension V01 {
    /// Answers queries, `V01.md` section 4.
    package enum QueryRules {
        /// The distinct registrants of a query.
        package static func registrants(in query: Query) -> [KeyHash] {
            var seen: Set<KeyHash> = []
            return query.publicKeys.compactMap(KeyHash.init(bytes:)).filter { seen.insert($0).inserted }
        }

        /// A row for each enabled device: with the access token, or with the list of the token encrypted for each allowed contact.
        package static func rows(of registrant: KeyHash, _ preferences: Preferences) -> [QueryInfo] {
            preferences.devices.filter(\.isEnabled).map { device in
                let list = device.filters?.allowedKeyList ?? []
                return QueryInfo(
                    accessToken: list.isEmpty ? preferences.accessToken : AccessToken(""), installationID: device.installationID,
                    publicKey: registrant.bytes, encryptedAccessTokens: list)
            }
        }

        /// The approximate size of a row in an answer, in bytes.
        package static func byteCount(of row: QueryInfo) -> Int {
            row.encryptedAccessTokens.reduce(256) { $0 + $1.count + 4 }
        }

        /// The answer; nil if there are no rows, in which case no answer is sent. Rows over the ``QueryBudget`` are left out.
        package static func answer(_ rows: [QueryInfo]) -> QueryResponse? {
            var budget = QueryBudget()
            let info = rows.filter { budget.admits(rowByteCount: byteCount(of: $0)) }
            return info.isEmpty ? nil : QueryResponse(info: info)
        }
    }
}
