import NodeAssembly
import Storage
import StorePostgreSQL

extension StoreLocation {
    /// - Parameter option: the value of `--store`; nil: from the environment or the configuration file.
    init(option: String?) throws(StoreError) {
        guard let text = Settings.store.value(option) else {
            self = .dataFolder
            return
        }
        self = .postgreSQL(try PostgreSQLAddress(text))
    }
}
