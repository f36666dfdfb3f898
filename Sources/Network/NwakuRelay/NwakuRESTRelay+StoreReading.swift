public import Waku

extension NwakuRESTRelay: StoreReadingRelay {
    /// One page of the node's store.
    public func storePage(_ query: StoreQuery) async throws(RelayError) -> StorePage {
        try await api.storePage(query)
    }
}

extension NwakuStoreWatch: StoreReadingRelay {
    package func storePage(_ query: StoreQuery) async throws(RelayError) -> StorePage {
        try await api.storePage(query)
    }
}

extension NwakuAPI {
    /// One page of the node's store, or of the store that the node forwards queries to.
    fileprivate func storePage(_ query: StoreQuery) async throws(RelayError) -> StorePage {
        do {
            return try await self.query(query)
        } catch {
            // 412: there is no store.
            throw RelayError(code: error.code == .status(412) ? .refused : .unavailable, message: error.message)
        }
    }
}
